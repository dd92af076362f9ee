import { modelError } from "@periodic-eval/contracts/options";
import {
  PeriodicEvalError,
  type Abilities,
  type CallOptions,
  type EvaluableModel,
  type Prompt,
} from "@periodic-eval/core";

/** Σ log p of a text, in nats, and its number of tokens. */
export interface ScoredText {
  readonly nats: number;
  readonly tokens: number;
}

/** A model's answer to a probe, with the model's log p of it. */
export interface ReferenceAnswer extends ScoredText {
  readonly text: string;
}

/** The baseline that collapse is compared with, as stored in JSON. */
export interface CollapseReference {
  /** Mean entropy over the positions of the fixed text; null if the engine cannot compute it. */
  readonly entropyNats: number | null;
  /** Answers by probe; null if the engine cannot score text. */
  readonly answers: Readonly<Record<string, readonly ReferenceAnswer[]>> | null;
}

/** A value, or null with the reason why it is unknown. */
export type Known<T> = { readonly value: T } | { readonly value: null; readonly reason: string };

/** Prefixes per call. Each one needs memory for one row of the vocabulary's size. */
const prefixesPerCall = 16;

/**
 * Returns the mean entropy of the next token over the positions of a text, in nats. Each entropy is over the whole vocabulary.
 * The first token is left out, because it has no prefix. Throws if the mean is not finite.
 */
export async function entropyOf(
  model: Partial<Abilities>,
  text: string,
  options: CallOptions,
): Promise<Known<number>> {
  const { tokenizer, nextToken } = model;
  if (tokenizer === undefined || nextToken === undefined)
    return unknown("the engine does not show the distribution of the next token");
  const [encoded] = await tokenizer.encode([text]);
  const ids = encoded!;
  const prompts: readonly Prompt[] = ids.slice(1).map((_, at) => ({ ids: ids.slice(0, at + 1) }));
  const entropies: number[] = [];
  for (let from = 0; from < prompts.length; from += prefixesPerCall) {
    const some = prompts.slice(from, from + prefixesPerCall);
    const seen = await nextToken.call(
      model,
      // `nextToken` requires a candidate; only the entropy is used.
      some.map((prompt) => ({ prompt, candidates: [ids[0]!] })),
      options,
    );
    for (const { entropyNats } of seen) {
      if (entropyNats === null) return unknown("the engine tells log-probs of chosen tokens and no entropy");
      entropies.push(entropyNats);
    }
  }
  if (entropies.length === 0) return unknown("the fixed text is of one token");
  const sum = entropies.reduce((total, entropy) => total + entropy, 0);
  if (!Number.isFinite(sum)) throw notFinite("the entropy", sum);
  return { value: sum / entropies.length };
}

/** Returns Σ log p of each answer to a prompt; null for a blank answer, which has no tokens to score. */
export async function scoreAnswers(
  model: Partial<Abilities>,
  prompt: Prompt,
  texts: readonly string[],
  options: CallOptions,
): Promise<Known<readonly (ScoredText | null)[]>> {
  if (model.logLikelihoods === undefined) return unknown("the engine scores no given text");
  const filled = [...new Set(texts.filter((text) => text.trim() !== ""))];
  const { logLikelihoods } = model;
  const scores = await valueOrReason(() =>
    logLikelihoods.call(
      model,
      filled.map((continuation) => ({ context: prompt, continuation })),
      options,
    ),
  );
  if (scores.value === null) return scores;
  const { value: scored } = scores;
  const of = new Map(
    filled.map((text, at) => {
      const { sumNats, tokenNats } = scored[at]!;
      if (!Number.isFinite(sumNats)) throw notFinite("Σ log p of an answer", sumNats);
      return [text, { nats: sumNats, tokens: tokenNats.length }];
    }),
  );
  return { value: texts.map((text) => of.get(text) ?? null) };
}

/** Returns the mean log p per token, or null if there are no tokens. */
export function perToken(scored: readonly (ScoredText | null)[]): number | null {
  const [nats, tokens] = scored.reduce<[number, number]>(
    (sum, text) => (text === null ? sum : [sum[0] + text.nats, sum[1] + text.tokens]),
    [0, 0],
  );
  return tokens === 0 ? null : nats / tokens;
}

export const unknown = (reason: string): { readonly value: null; readonly reason: string } => ({
  value: null,
  reason,
});

/** Returns the model without its adapter, or null if there is none or it cannot generate. */
export function baseOf(
  model: Pick<EvaluableModel, "base">,
): (EvaluableModel & Pick<Abilities, "generate">) | null {
  const { base } = model;
  return base?.generate === undefined ? null : (base as EvaluableModel & Pick<Abilities, "generate">);
}

const notFinite = (what: string, got: number) =>
  modelError(
    "collapse",
    `${what} of ${got}`,
    "a finite number",
    "Check the loss: the weights are probably NaN or infinite.",
  );

const unscored = new WeakSet<PeriodicEvalError>();

/** Returns the error for a reply to `/v1/score` without usable numbers. A metric catches it with `valueOrReason`. */
export function unscoredError(url: string, got: string): PeriodicEvalError {
  const error = modelError(
    `${url}/v1/score`,
    got,
    "a log-probability for each token of the text (logprobs)",
    "Use a service that returns scores, or leave logprob and collapse out of metrics.",
  );
  unscored.add(error);
  return error;
}

/** Returns what `read` returns; null and the reason if the service's scores have no numbers. All other errors pass through. */
export async function valueOrReason<T>(
  read: () => Promise<T>,
): Promise<
  { readonly value: T; readonly reason?: undefined } | { readonly value: null; readonly reason: string }
> {
  try {
    return { value: await read() };
  } catch (error) {
    if (!PeriodicEvalError.is(error) || !unscored.has(error)) throw error;
    return { value: null, reason: `${error.where}: ${error.got}` };
  }
}
