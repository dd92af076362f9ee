import { PeriodicEvalError, type CallOptions, type Prompt, type ModelWith } from "@periodic-eval/contracts";

/** A question whose choices are scored as continuations of one context. */
export interface ChoiceRequest {
  /** Names the question in errors. */
  readonly id: string;
  readonly context: Prompt;
  readonly continuations: readonly string[];
}

/** The log-likelihoods of one question's choices, in their order; C choices. */
export interface ChoiceScores {
  /** Σ log p of each choice in nats, [C]. All finite. */
  readonly nats: readonly number[];
  /** The number of tokens of each choice, [C]. */
  readonly tokens: readonly number[];
  /** Whether every token of a choice was the most likely one, [C]; null if the engine does not report it. */
  readonly isGreedy: readonly (boolean | null)[];
  /** Tokens of the context cut on the left to fit the model: the maximum over the choices; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

/**
 * Scores every choice of every question in one call of the model. Cloze evaluations of this package and of
 * `@periodic-eval/tasks` share this function.
 *
 * @throws PeriodicEvalError `model` if a log-likelihood is not finite.
 */
export async function scoreChoices(
  model: ModelWith<"logLikelihoods">,
  requests: readonly ChoiceRequest[],
  options: CallOptions,
): Promise<readonly ChoiceScores[]> {
  const pairs = requests.flatMap(({ context, continuations }) =>
    continuations.map((continuation) => ({ context, continuation })),
  );
  const answers = (await model.logLikelihoods(pairs, options)).values();
  return requests.map(({ id, continuations }) => {
    const scores = continuations.map(() => answers.next().value!);
    const nats = scores.map(({ sumNats }) => sumNats);
    checkLogProbs(id, nats, continuations.length);
    return {
      nats,
      tokens: scores.map(({ tokenNats }) => tokenNats.length),
      isGreedy: scores.map(({ isGreedy }) => isGreedy),
      truncatedTokens: highestOrNull(scores.map(({ truncatedTokens }) => truncatedTokens)),
    };
  });
}

const highestOrNull = (counts: readonly (number | null)[]): number | null =>
  counts.every((count) => count !== null) ? Math.max(...counts) : null;

/** Counts the rows with truncated tokens; null if a row's number is unknown. */
export const truncatedRows = (rows: readonly { readonly truncatedTokens: number | null }[]): number | null =>
  rows.every(({ truncatedTokens }) => truncatedTokens !== null)
    ? rows.filter(({ truncatedTokens }) => truncatedTokens! > 0).length
    : null;

/** @throws PeriodicEvalError `model` unless `nats` are `count` finite numbers. */
export function checkLogProbs(id: string, nats: readonly number[], count: number): void {
  if (nats.length === count && nats.every(Number.isFinite)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: `question ${id}`,
    got: `log-probabilities [${nats.join(", ")}]`,
    expected: `${count} finite numbers`,
    fix: "Check the training loss: NaN or infinite weights cause this, and so does the log of an underflowed softmax.",
  });
}

/** Returns the index of the highest value, the first of equal ones. */
export function indexOfHighest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

/** The index of the best choice: by Σ log p, and by Σ log p per code point of the choice. */
export interface PredictedChoice {
  readonly bySum: number;
  readonly perCodePoint: number;
}

/**
 * Returns the best choice as lm-evaluation-harness 0.4.13 selects it for `acc` (`bySum`) and `acc_norm` (`perCodePoint`); the
 * first of equal ones.
 */
export function predictChoice(nats: readonly number[], choices: readonly string[]): PredictedChoice {
  return { bySum: indexOfHighest(nats), perCodePoint: indexOfHighest(perCodePoint(nats, choices)) };
}

/** Returns Σ log p of each choice divided by the number of code points of its text. */
export function perCodePoint(nats: readonly number[], choices: readonly string[]): readonly number[] {
  return nats.map((sum, at) => sum / Array.from(choices[at]!).length);
}

/** Returns the log of the summed probability of the right choices. `gold` holds one or more indices into `nats`. */
export function goldLogProb(nats: readonly number[], gold: readonly number[]): number {
  const right = gold.map((at) => nats[at]!);
  const top = Math.max(...right);
  return top + Math.log(right.reduce((sum, one) => sum + Math.exp(one - top), 0));
}

/** Returns log p of the best right choice minus log p of the best wrong one; null without a wrong choice. */
export function goldMargin(nats: readonly number[], gold: readonly number[]): number | null {
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return wrong.length === 0 ? null : Math.max(...gold.map((at) => nats[at]!)) - Math.max(...wrong);
}

/** Returns the probability of the right choices among all choices, in (0, 1]: a softmax of the log-probabilities. */
export function goldProb(nats: readonly number[], gold: readonly number[]): number {
  const right = goldLogProb(nats, gold);
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return 1 / (1 + wrong.reduce((sum, one) => sum + Math.exp(one - right), 0));
}
