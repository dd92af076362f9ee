import { isCount, quoteValue } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";
import { arrayOrNull, at, checkNoError, errorIn } from "../http/reply-fields.ts";

/** Returns the error for a server whose numbers cannot be used. */
export const serverError = (details: Omit<ErrorDetails, "code">): PeriodicEvalError =>
  new PeriodicEvalError({ code: "model", ...details });

/** Settings that a server would otherwise take from the model's `generation_config.json`. */
export const neutralSampling = {
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
} as const;

/** vLLM writes this for −∞ and NaN. */
const missingLogProb = -9999;
/** Rounding can raise the log-probability of a certain token above 0. */
const rounding = 1e-4;

/**
 * Returns the choices of a completion in the order of their prompts.
 *
 * @param expected The number of choices, and the model that was asked.
 * @throws PeriodicEvalError `model` for another number of choices, or an answer of another model.
 */
export function choicesOf(
  reply: unknown,
  expected: { readonly count: number; readonly model: string; readonly isAdapter: boolean },
  where: string,
): readonly unknown[] {
  const { count, model, isAdapter } = expected;
  checkNoError(where, errorIn(reply, "choices"));
  const received = arrayOrNull(at(reply, "choices")) ?? [];
  const choices = Array.from({ length: count }, (_, index) =>
    received.find((choice) => at(choice, "index") === index),
  );
  if (received.length !== count || choices.includes(undefined))
    throw serverError({
      where,
      got: `a reply with ${received.length} choices`,
      expected: `one for each of ${count} prompts`,
      fix: "Check that the address belongs to a server with the Completions API, such as vLLM.",
    });
  // A base model may have several names.
  if (isAdapter && at(reply, "model") !== model)
    throw serverError({
      where,
      got: `an answer of the model ${quoteValue(at(reply, "model"))}`,
      expected: `one of the adapter ${model}`,
      fix: "Check that nothing else loads and unloads adapters on this server.",
    });
  return choices;
}

/** @throws PeriodicEvalError `model` unless the server read these ids. */
export function checkPromptIds(choice: unknown, ids: readonly number[], where: string): void {
  const read = arrayOrNull(at(choice, "prompt_token_ids"));
  if (read?.length === ids.length && ids.every((id, index) => id === read[index])) return;
  throw serverError({
    where,
    got: read === null ? "a reply without prompt_token_ids" : `a prompt of ${read.length} other tokens`,
    expected: `the ${ids.length} token ids that were sent`,
    fix: "Use a server that reads token ids unchanged and reports them, such as vLLM.",
  });
}

/** The log-probability of one token of a prompt, after those before it. */
export interface ScoredToken {
  readonly nats: number;
  /** Whether no token was more likely. */
  readonly isTop: boolean;
  readonly greedyId: number;
}

/**
 * Reads the scores of the last `count` tokens of a prompt.
 *
 * @throws PeriodicEvalError `model` for a reply without them, or with numbers that are not log-probabilities.
 */
export function scoredTokens(
  choice: unknown,
  ids: readonly number[],
  count: number,
  where: string,
): readonly ScoredToken[] {
  checkPromptIds(choice, ids, where);
  const list = arrayOrNull(at(choice, "prompt_logprobs"));
  return ids.slice(-count).map((id, index): ScoredToken => {
    const entry = list?.length === ids.length ? list[ids.length - count + index] : null;
    const nats = logProbOf(at(entry, String(id), "logprob"), where);
    const top = Object.entries(entry ?? {}).find(([, candidate]) => at(candidate, "rank") === 1);
    if (top === undefined)
      throw serverError({
        where,
        got: "prompt_logprobs without the most likely token",
        expected: "the token of rank 1 at each position",
        fix: "Use a server that returns it, such as vLLM.",
      });
    // The server ranks a tie below; here a tie counts as most likely.
    const isTop = nats >= logProbOf(at(top[1], "logprob"), where);
    return { nats, isTop, greedyId: Number(top[0]) };
  });
}

/** Reads log-probabilities by token id at each position of a completion; null if the reply has none. */
export function topLogProbs(choice: unknown, where: string): readonly ReadonlyMap<number, number>[] | null {
  const list = arrayOrNull(at(choice, "logprobs", "top_logprobs"));
  return (
    list?.map((entry) => {
      const pairs = Object.entries(entry ?? {}).flatMap(([token, nats]): [number, number][] => {
        const id = /^token_id:(\d+)$/.exec(token)?.[1];
        // Entries that another request of the batch asked for (`logprob_token_ids`) are filled up with token 0 at −∞.
        return id === undefined || nats === missingLogProb ? [] : [[Number(id), logProbOf(nats, where)]];
      });
      return new Map(pairs);
    }) ?? null
  );
}

/** Reads the ids of a completion; null if the reply has none. */
export function completionIds(choice: unknown): readonly number[] | null {
  const ids = arrayOrNull(at(choice, "token_ids"));
  return ids?.every((id): id is number => isCount(id)) ? ids : null;
}

export function logProbOf(value: unknown, where: string): number {
  if (typeof value === "number" && value > missingLogProb && value <= rounding) return value;
  throw serverError({
    where,
    got:
      value === undefined
        ? "a reply without a requested log-probability"
        : `the log-probability ${quoteValue(value)}`,
    expected: "a number of at most 0 for each token",
    fix:
      value === missingLogProb
        ? "Check the model's weights: the server writes -9999 for −∞ and NaN."
        : "Use a server that returns prompt_logprobs, such as vLLM.",
  });
}
