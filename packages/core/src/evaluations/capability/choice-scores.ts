import { PeriodicEvalError } from "../../errors.ts";
import type { CallOptions, LogLikelihood, Prompt, ModelWith } from "../../contracts/model.ts";

/** A question whose choices are continuations of one context. */
export interface AskedChoices {
  readonly context: Prompt;
  readonly continuations: readonly string[];
}

/** The log-likelihood of every choice of every question, in one call of the model. */
export async function scoreChoices(
  model: ModelWith<"logLikelihoods">,
  asked: readonly AskedChoices[],
  options: CallOptions,
): Promise<readonly (readonly LogLikelihood[])[]> {
  const requests = asked.flatMap(({ context, continuations }) =>
    continuations.map((continuation) => ({ context, continuation })),
  );
  const answers = (await model.logLikelihoods(requests, options)).values();
  return asked.map(({ continuations }) => continuations.map(() => answers.next().value!));
}

/** @throws PeriodicEvalError `model` where log-probabilities are not `count` finite numbers. */
export function checkNats(id: string, nats: readonly number[], count: number): void {
  if (nats.length === count && nats.every(Number.isFinite)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: `question ${id}`,
    got: `log-probabilities [${nats.join(", ")}]`,
    expected: `${count} finite numbers`,
    fix: "Look at the loss: weights that are NaN or infinite answer so, and so does the log of an underflowed softmax.",
  });
}

/** Index of the highest value, the first of equals. */
export function firstHighest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

/** Σ log p of each choice over the code points of its text, as lm-evaluation-harness' `acc_norm` compares them. */
export function perCodePoint(nats: readonly number[], choices: readonly string[]): readonly number[] {
  return nats.map((sum, at) => sum / Array.from(choices[at]!).length);
}

/** log p of the right choices together, over the whole vocabulary. `gold` are indices into `nats`, one or more. */
export function rightLogProb(nats: readonly number[], gold: readonly number[]): number {
  const right = gold.map((at) => nats[at]!);
  const top = Math.max(...right);
  return top + Math.log(right.reduce((sum, one) => sum + Math.exp(one - top), 0));
}

/** log p of the best right choice − log p of the best wrong one: above 0 where the answer is right; null where none is wrong. */
export function rightMargin(nats: readonly number[], gold: readonly number[]): number | null {
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return wrong.length === 0 ? null : Math.max(...gold.map((at) => nats[at]!)) - Math.max(...wrong);
}

/** Probability of the right choices among all: softmax of the log-probabilities, in (0, 1]. */
export function rightProb(nats: readonly number[], gold: readonly number[]): number {
  const right = rightLogProb(nats, gold);
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return 1 / (1 + wrong.reduce((sum, one) => sum + Math.exp(one - right), 0));
}
