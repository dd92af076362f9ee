import type { Json } from "../../contracts/json.ts";
import type { CallOptions, Completion, Sampling, Usage, ModelWith } from "../../contracts/model.ts";
import type { Verdict } from "../../contracts/grading.ts";

export type JudgeMethodName = "json" | "logprob";

/** Runs one call to the judge: under a deadline, counted, its cost kept. */
export type JudgeCall = <T>(
  prompt: string,
  ask: (options: CallOptions) => Promise<T>,
  usageOf?: (result: T) => Usage | undefined,
) => Promise<T>;

/** How a judge is asked and understood. */
export interface JudgeMethod {
  /** Names of its prompts, one call each. */
  readonly prompts: readonly string[];
  /** The most tokens that a call draws. */
  readonly maxOutputTokens: number;
  /** What changes a verdict beside model, prompts and scores. */
  readonly sampling: Json;
  /**
   * The verdict on an answer that is filled into the prompts, which are in the order of their names.
   *
   * @throws whatever the model throws; PeriodicEvalError `judge` where what it gave is no use.
   */
  verdict(prompts: readonly string[], call: JudgeCall): Promise<Verdict>;
  /** @throws PeriodicEvalError `judge` where the model does not fit the method. */
  check?(call: JudgeCall): Promise<void>;
}

/** Two judges of one model at temperature 0 draw nothing: the seed is only a name. */
export const greedy = { temperature: 0, seed: "judge" } as const;

/** What the judge reads: one turn of a user, and no system prompt. */
export const asked = (prompt: string) => ({ messages: [{ role: "user", content: prompt }] });

/** One completion of a prompt, as one call. */
export function completionOf(
  model: ModelWith<"generate">,
  prompt: string,
  sampling: Sampling,
  call: JudgeCall,
): Promise<Completion> {
  const ask = async (options: CallOptions) => {
    const [completion] = await model.generate([{ prompt: asked(prompt), sampling }], options);
    if (completion === undefined) throw new Error("the judge gave no completion");
    return completion;
  };
  return call(prompt, ask, ({ usage }) => usage);
}
