import type {
  Json,
  CallOptions,
  Completion,
  Sampling,
  Usage,
  ModelWith,
  Verdict,
} from "@periodic-eval/contracts";

export type JudgeMethodName = "json" | "logprob";

/** Runs one call to the judge with a timeout, and counts its requests and cost. */
export type JudgeCall = <T>(
  prompt: string,
  ask: (options: CallOptions) => Promise<T>,
  usageOf?: (result: T) => Usage | undefined,
) => Promise<T>;

/** How a judge is prompted and its reply is parsed. */
export interface JudgeMethod {
  /** Names of its prompts. Each prompt is one call. */
  readonly prompts: readonly string[];
  /** The maximum number of tokens that a call generates. */
  readonly maxOutputTokens: number;
  /** Everything that changes a verdict besides model, prompts and scores. */
  readonly sampling: Json;
  /**
   * Returns the verdict on an answer.
   *
   * @param prompts The filled prompts, in the order of their names.
   * @throws The model's errors; PeriodicEvalError `judge` for a reply that the method cannot use.
   */
  verdict(prompts: readonly string[], call: JudgeCall): Promise<Verdict>;
  /** @throws PeriodicEvalError `judge` if the model does not support the method. */
  check?(call: JudgeCall): Promise<void>;
}

/** Temperature 0 samples nothing, so the seed is only a name. */
export const greedy = { temperature: 0, seed: "judge" } as const;

/** Returns the judge's prompt as a chat: one user turn, no system prompt. */
export const judgeChat = (prompt: string) => ({ messages: [{ role: "user", content: prompt }] });

export function completionOf(
  model: ModelWith<"generate">,
  prompt: string,
  sampling: Sampling,
  call: JudgeCall,
): Promise<Completion> {
  const ask = async (options: CallOptions) => {
    const [completion] = await model.generate([{ prompt: judgeChat(prompt), sampling }], options);
    if (completion === undefined) throw new Error("the judge gave no completion");
    return completion;
  };
  return call(prompt, ask, ({ usage }) => usage);
}
