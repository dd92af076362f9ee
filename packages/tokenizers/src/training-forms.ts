import { hashText } from "@periodic-eval/contracts";

/** The effects of TRL's training template that the text of the published template does not reveal. */
export interface TrainingForm {
  /** Characters at the end of the generation prompt that count as part of the answer. */
  readonly scoredCue: number;
  /** Whether the thinking in an answer stays, which the template removes. */
  readonly keepsThinking: boolean;
}

const usual: TrainingForm = { scoredCue: 0, keepsThinking: false };
const wholeCue: TrainingForm = { ...usual, scoredCue: Infinity };

/**
 * The published templates of which TRL 1.16.0's training templates score tokens of the generation prompt, or have another
 * effect, by their hash: TRL recognises templates by their text. Null if no form has that effect.
 */
const forms: Readonly<Record<string, TrainingForm | null>> = {
  // Qwen2.5
  "pe128:d07338b7f0799d0a4fb6c82508e68fe4": { ...usual, scoredCue: 1 },
  // DeepSeek-V3
  "pe128:2cb8b29fb5c14bc4a39127e8c52bcf54": wholeCue,
  // DeepSeek-R1-Distill
  "pe128:da97360f729869e1c27672dee09dfa66": { ...wholeCue, keepsThinking: true },
  // gpt-oss
  "pe128:39767ca200baf4b3fb3c0ff806088f9b": wholeCue,
  // Muse Glimmer
  "pe128:2a890d9ca88b5d6289c9395e7b6f2186": wholeCue,
  // GLM-4-MoE: TRL adds an end of turn, which the template does not write.
  "pe128:781c2651b0a851871e5da50dedaf7884": null,
  // DiffusionGemma: TRL scores no replies of tools inside an answer.
  "pe128:1e710e20404501842bc11302c83279b6": null,
};

/**
 * Returns the form of a template; null if it cannot be derived.
 *
 * @param source The template's text; null if it is unknown.
 */
export function trainingForm(source: string | null): TrainingForm | null {
  const form = source === null ? undefined : forms[hashText(source)];
  return form === undefined ? usual : form;
}
