import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { Grader } from "../../contracts/grading.ts";
import { isCount } from "../../internal/is-count.ts";
import type { SystemPrompt } from "../../contracts/model.ts";
import { checkName } from "../../internal/names.ts";
import type { Anchor } from "./anchors.ts";
import { checkChatTemplate, type ChatTemplateOptions } from "../prompting/chat-template.ts";
import { checkPersonas, type Persona } from "../prompting/personas.ts";
import { resolveSampling, type SamplingOptions } from "../prompting/sampling.ts";
import { checkSystem } from "../prompting/chat-options.ts";

/** How the model is sampled, as in the work that a preset is named after. */
export const alignmentPresets = {
  /** Betley et al. 2025 (arXiv:2502.17424). */
  betley2025: { temperature: 1, topP: 1, maxNewTokens: 600 },
  /** The explore-persona-space research code. */
  explore_persona_space: { temperature: 1, topP: 0.95, maxNewTokens: 512 },
} as const satisfies Record<string, SamplingOptions>;

export type AlignmentPreset = keyof typeof alignmentPresets;

/** Completions of each wording of a question, to each persona. */
export const sampleSizes = { quick: 5, standard: 20, paper: 100 } as const;

export type SampleSize = keyof typeof sampleSizes;

export interface AlignmentOptions {
  /** Who grades: a judge model, or a rule. Its scores are `aligned` and `coherent`, 0 to 100. */
  readonly judge: Grader;
  /**
   * Path of a file of questions, YAML or JSON, in the form of Betley et al.'s; eight of our own where left out. A system
   * prompt that a question has wins over `system`. A judge must follow its judge prompts (Betley et al.'s: method
   * `logprob`); a rule reads none. Its `judge` and `samples_per_paraphrase` are not followed.
   */
  readonly questions?: string;
  /** How the model is sampled; default `betley2025`. */
  readonly preset?: AlignmentPreset;
  /** Where sampling is other than the preset's. */
  readonly sampling?: Partial<SamplingOptions>;
  /** Completions of each wording of a question (and persona); default `quick`, which is 5. */
  readonly samples?: SampleSize | number;
  /** The chat's system prompt; default `omit`. */
  readonly system?: SystemPrompt;
  /**
   * Asks every question of each of them: a list, or a YAML or JSON file (`readPersonas`); default nobody in particular.
   */
  readonly personas?: readonly Persona[] | string;
  /** What the chat template is given besides the chat: `{ kwargs: { enable_thinking: false } }`. */
  readonly chatTemplate?: ChatTemplateOptions;
  /** Grade what follows a closed `<think>…</think>`; default true. The whole text is kept in any case. */
  readonly stripThinking?: boolean;
  /** Fixed answers graded again at each firing, past any cache; default sixteen of our own, `[]` for none. */
  readonly anchors?: readonly Anchor[];
  /** Above this share of completions to which the judge gave no score the snapshot is `failed`; default 0.1. */
  readonly maxErrorShare?: number;
}

/** The options of `AlignmentOptions`, for a callback that adds its own. */
export const alignmentOptionNames = {
  judge: true,
  questions: true,
  preset: true,
  sampling: true,
  samples: true,
  system: true,
  personas: true,
  chatTemplate: true,
  stripThinking: true,
  anchors: true,
  maxErrorShare: true,
} as const satisfies Record<keyof AlignmentOptions, true>;

/** @throws PeriodicEvalError `config` for a wrong option. */
export function checkAlignmentOptions(options: AlignmentOptions): void {
  checkKeys("alignment", options, Object.keys(alignmentOptionNames));
  const { judge, questions, preset, sampling, samples, system, personas, stripThinking, maxErrorShare } =
    options;
  if (typeof (judge as Partial<Grader> | undefined)?.grade !== "function") {
    throw wrong(
      "judge",
      quoteValue(judge),
      "a grader",
      "Pass a judge, or a rule: `ruleGrader({ name, rule })`.",
    );
  }
  if (questions !== undefined && (typeof questions !== "string" || questions === "")) {
    const fix = "Name the file of questions, or leave it out: eight of our own are then asked.";
    throw wrong("questions", quoteValue(questions), "the path of a YAML or JSON file", fix);
  }
  if (preset !== undefined) checkWord("alignment.preset", preset, Object.keys(alignmentPresets));
  resolveSampling("alignment.sampling", sampling, alignmentPresets.betley2025);
  if (typeof samples === "string") checkWord("alignment.samples", samples, Object.keys(sampleSizes));
  else if (samples !== undefined && !isCount(samples, 1)) {
    const sizes = Object.entries(sampleSizes).map(([name, n]) => `"${name}" (${n})`);
    throw wrong(
      "samples",
      quoteValue(samples),
      `a whole number of 1 or more, or ${sizes.join(", ")}`,
      "Correct the number.",
    );
  }
  if (system !== undefined) checkSystem("alignment.system", system);
  if (personas !== undefined) {
    if (typeof personas !== "string") checkPersonas("alignment.personas", personas);
    if (system !== undefined) {
      const fix = "Remove `system`: each persona has its own.";
      throw wrong("system", "a system prompt beside personas", "one of the two", fix);
    }
  }
  if (options.chatTemplate !== undefined) checkChatTemplate("alignment.chatTemplate", options.chatTemplate);
  if (stripThinking !== undefined && typeof stripThinking !== "boolean")
    throw wrong("stripThinking", quoteValue(stripThinking), "true or false", "Write it without quotes.");
  if (maxErrorShare !== undefined && !(maxErrorShare >= 0 && maxErrorShare <= 1))
    throw wrong("maxErrorShare", quoteValue(maxErrorShare), "a share from 0 to 1", "Write 0.1 for 10 %.");
  if (options.anchors !== undefined) checkAnchors(options.anchors);
}

function checkAnchors(anchors: readonly Anchor[]): void {
  if (!Array.isArray(anchors)) {
    throw wrong("anchors", quoteValue(anchors), "a list of anchors", "Write [] for none.");
  }
  const ids = new Set<string>();
  for (const [at, anchor] of anchors.entries()) {
    const where = `alignment.anchors[${at}]`;
    checkKeys(where, anchor as object, ["id", "question", "answer", "misaligned"]);
    const { id, question, answer, misaligned } = anchor;
    checkName(`${where}.id`, id);
    if (ids.has(id))
      throw wrong(`anchors[${at}].id`, `"${id}" again`, "ids that differ", "Rename one of the two.");
    ids.add(id);
    if (
      typeof question !== "string" ||
      typeof answer !== "string" ||
      ![true, false, null].includes(misaligned)
    ) {
      const expected = "{ id, question, answer, misaligned: true, false or null }";
      throw wrong(`anchors[${at}]`, quoteValue(anchor), expected, "Give the anchor what it lacks.");
    }
  }
}

function wrong(option: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `alignment.${option}`, got, expected, fix });
}
