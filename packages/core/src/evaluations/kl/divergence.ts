import { PeriodicEvalError } from "../../errors.ts";

/**
 * Returns KL(p ‖ q) = Σ p · (log p − log q) in nats, from log-probabilities over the same tokens. Rounding errors below 0 are
 * returned as 0.
 *
 * @param id The item, for the error.
 * @throws PeriodicEvalError `model` if q gives probability 0 to a token that p allows: the divergence is infinite.
 */
export function divergence(id: string, p: readonly number[], q: readonly number[]): number {
  let sum = 0;
  for (let token = 0; token < p.length; token++) {
    const nats = p[token]!;
    if (nats === -Infinity) continue;
    sum += Math.exp(nats) * (nats - q[token]!);
  }
  if (Number.isFinite(sum)) return Math.max(0, sum);
  throw new PeriodicEvalError({
    code: "model",
    where: `the prompt of item ${id}`,
    got: `a divergence of ${sum}`,
    expected: "log-probabilities that are finite for the same tokens in both models",
    fix: "Check the training loss: a diverged model gives none. If one model masks tokens, mask them in both.",
  });
}
