import { checkKeys } from "../check-keys.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { Sampling } from "../model/types.ts";

export interface Drawn {
  readonly token: number;
  /** log p of the token in the model's own distribution: before temperature, top-k and top-p. */
  readonly nats: number;
}

/**
 * Draws one token in double precision, on the host: temperature, then top-k, then top-p, in the order of Hugging Face's
 * logits processors. Ties are ordered by id. Exactly one number is taken from `random`, whatever the restriction.
 *
 * @param logits [V], of one position.
 * @param random numbers in [0, 1).
 */
export function drawToken(logits: Float32Array, sampling: Sampling, random: () => number): Drawn {
  const { temperature } = sampling;
  const top = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const weights = Float64Array.from(logits, (value) => Math.exp((value - top) / temperature));
  const candidates = restrict(weights, sampling);
  const mass = candidates.reduce((sum, id) => sum + weights[id]!, 0);
  const goal = random() * mass;
  let reached = 0;
  // Rounding can leave `reached` short of `goal` at the end: the last candidate with any weight stands for that sliver.
  let token = candidates.findLast((id) => weights[id]! > 0) ?? candidates[0] ?? 0;
  for (const id of candidates) {
    reached += weights[id]!;
    if (reached > goal) {
      token = id;
      break;
    }
  }
  const partition = logits.reduce((sum, value) => sum + Math.exp(value - top), 0);
  return { token, nats: logits[token]! - top - Math.log(partition) };
}

/** Ids that top-k and top-p leave; all ids, in order, where neither is set. */
function restrict(weights: Float64Array, { topK, topP = 1 }: Sampling): Int32Array {
  const all = Int32Array.from(weights, (_, id) => id);
  if (topP === 1 && (topK === undefined || topK >= weights.length)) return all;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  // Ids below this weight together hold less than 1 − p, so top-p cannot need them: sorting the rest is far cheaper.
  const floor = topK === undefined ? ((1 - topP) * total) / weights.length : 0;
  const likely = all.filter((id) => weights[id]! >= floor).sort((a, b) => weights[b]! - weights[a]! || a - b);
  const kept = topK === undefined ? likely : likely.subarray(0, topK);
  if (topP === 1) return kept;
  const mass = topK === undefined ? total : kept.reduce((sum, id) => sum + weights[id]!, 0);
  let reached = 0;
  const end = kept.findIndex((id) => (reached += weights[id]!) >= topP * mass);
  return end === -1 ? kept : kept.subarray(0, end + 1);
}

/** @throws PeriodicEvalError `config` naming the setting that is out of range. */
export function checkSampling(sampling: Sampling): void {
  checkKeys("sampling", sampling, ["maxNewTokens", "temperature", "topP", "topK", "stop", "seed"]);
  const { maxNewTokens, temperature, topP = 1, topK = 1, stop = [] } = sampling;
  const refuse = (name: string, got: unknown, expected: string): never => {
    throw new PeriodicEvalError({
      code: "config",
      where: `sampling.${name}`,
      got: String(JSON.stringify(got) ?? got),
      expected,
      fix: `Set ${name} within that range.`,
    });
  };
  if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1)
    refuse("maxNewTokens", maxNewTokens, "an integer from 1");
  if (!Number.isFinite(temperature) || temperature < 0)
    refuse("temperature", temperature, "a number from 0 (greedy)");
  if (!(topP > 0 && topP <= 1)) refuse("topP", topP, "a number in (0, 1]");
  if (!Number.isInteger(topK) || topK < 1)
    refuse("topK", topK, "an integer from 1; leave it out for no limit");
  if (stop.includes("")) refuse("stop", stop, "strings that are not empty");
}
