import {
  PeriodicEvalError,
  type Abilities,
  type CallOptions,
  type EvaluableModel,
  type Prompt,
} from "@periodic-eval/core";

/** Tokens of some text, and Σ log p of them, in nats. */
export interface ScoredText {
  readonly nats: number;
  readonly tokens: number;
}

/** What a model said to a probe, and how likely it found that. */
export interface ReferenceAnswer extends ScoredText {
  readonly text: string;
}

/** What collapse is compared with: the baseline, as JSON holds it. */
export interface CollapseReference {
  /** Mean over the places of the fixed text; null where the engine cannot tell. */
  readonly entropyNats: number | null;
  /** By probe. Null where the engine scores no text. */
  readonly answers: Readonly<Record<string, readonly ReferenceAnswer[]>> | null;
}

/** What is unknown, and why. */
export type Known<T> = { readonly value: T } | { readonly value: null; readonly reason: string };

type TellingEntropies = Partial<Abilities> & Pick<EvaluableModel, "textEntropies">;

/** Several prefixes a call: a row of the vocabulary each. */
const prefixesPerCall = 16;

/**
 * Mean entropy of the next token over the places of a text, in nats, each by the model's whole distribution; the first token,
 * which nothing stands before, is left out.
 */
export async function entropyOf(
  model: TellingEntropies,
  text: string,
  options: CallOptions,
): Promise<Known<number>> {
  const known = await entropiesOf(model, text, options);
  if (known.value === null) return known;
  const { value: entropies } = known;
  if (entropies.length === 0) return unknown("the fixed text is of one token");
  const sum = entropies.reduce((total, entropy) => total + entropy, 0);
  if (!Number.isFinite(sum)) throw notFinite("the entropy", sum);
  return { value: sum / entropies.length };
}

/** After each token of a text but its last: see `EvaluableModel.textEntropies`. */
export async function entropiesOf(
  model: TellingEntropies,
  text: string,
  options: CallOptions,
): Promise<Known<readonly number[]>> {
  const { tokenizer, nextToken } = model;
  if (model.textEntropies !== undefined) return { value: (await model.textEntropies([text], options))[0]! };
  if (tokenizer === undefined || nextToken === undefined)
    return unknown("the engine does not show the distribution of the next token");
  const ids = tokenizer.encode(text);
  const prompts: readonly Prompt[] = ids.slice(1).map((_, at) => ({ ids: ids.slice(0, at + 1) }));
  const entropies: number[] = [];
  for (let from = 0; from < prompts.length; from += prefixesPerCall) {
    const some = prompts.slice(from, from + prefixesPerCall);
    const seen = await nextToken.call(
      model,
      // What the candidate is does not matter: the entropy is asked for.
      some.map((prompt) => ({ prompt, candidates: [ids[0]!] })),
      options,
    );
    for (const { entropyNats } of seen) {
      if (entropyNats === null) return unknown("the engine tells log-probs of chosen tokens and no entropy");
      entropies.push(entropyNats);
    }
  }
  return { value: entropies };
}

/** Σ log p of answers to a prompt; null by answer for one without a word, which has no tokens to score. */
export async function scoreAnswers(
  model: Partial<Abilities>,
  prompt: Prompt,
  texts: readonly string[],
  options: CallOptions,
): Promise<Known<readonly (ScoredText | null)[]>> {
  if (model.logLikelihoods === undefined) return unknown("the engine scores no given text");
  const filled = [...new Set(texts.filter((text) => text.trim() !== ""))];
  const scores = await model.logLikelihoods(
    filled.map((continuation) => ({ context: prompt, continuation })),
    options,
  );
  const of = new Map(
    filled.map((text, at) => {
      const { sumNats, tokenNats } = scores[at]!;
      if (!Number.isFinite(sumNats)) throw notFinite("Σ log p of an answer", sumNats);
      return [text, { nats: sumNats, tokens: tokenNats.length }];
    }),
  );
  return { value: texts.map((text) => of.get(text) ?? null) };
}

/** Mean log p by token; null without a token. */
export function perToken(scored: readonly (ScoredText | null)[]): number | null {
  const [nats, tokens] = scored.reduce<[number, number]>(
    (sum, one) => (one === null ? sum : [sum[0] + one.nats, sum[1] + one.tokens]),
    [0, 0],
  );
  return tokens === 0 ? null : nats / tokens;
}

export const unknown = (reason: string): { readonly value: null; readonly reason: string } => ({
  value: null,
  reason,
});

/** A model without its adapter that can be asked for what is compared; null where there is none. */
export function baseOf(
  model: Pick<EvaluableModel, "base">,
): (EvaluableModel & Pick<Abilities, "generate">) | null {
  const { base } = model;
  return base?.generate === undefined ? null : (base as EvaluableModel & Pick<Abilities, "generate">);
}

const notFinite = (what: string, got: number) =>
  new PeriodicEvalError({
    code: "model",
    where: "collapse",
    got: `${what} of ${got}`,
    expected: "a finite number",
    fix: "Look at the loss: weights that are NaN or infinite answer so.",
  });
