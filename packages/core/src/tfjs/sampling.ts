import { checkKeys } from "../internal/check-keys.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { Sampling } from "../contracts/model.ts";

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
  const { top, weights, total, partition } = weighed(logits, sampling.temperature);
  const token = drawn(weights, restrict(weights, total, sampling), random());
  return { token, nats: logits[token]! - top - Math.log(partition) };
}

/** exp((logit − top) / T) of each token, their sum, and what it is at T = 1. In loops: this is done for every token drawn. */
function weighed(logits: Float32Array, temperature: number) {
  let top = -Infinity;
  for (const logit of logits) if (logit > top) top = logit;
  const weights = new Float64Array(logits.length);
  let [total, partition] = [0, 0];
  for (let id = 0; id < logits.length; id++) {
    const nats = logits[id]! - top;
    const probability = Math.exp(nats);
    const weight = temperature === 1 ? probability : Math.exp(nats / temperature);
    weights[id] = weight;
    total += weight;
    partition += probability;
  }
  return { top, weights, total, partition };
}

/** Which of the candidates, all ids where null, has the `share`-th part of their mass behind it. */
function drawn(weights: Float64Array, candidates: Int32Array | null, share: number): number {
  const count = candidates?.length ?? weights.length;
  const idOf = (at: number) => (candidates === null ? at : candidates[at]!);
  let mass = 0;
  for (let at = 0; at < count; at++) mass += weights[idOf(at)]!;
  const goal = share * mass;
  let reached = 0;
  // Rounding can leave `reached` short of `goal` at the end: the last candidate with any weight stands for that sliver.
  let last = idOf(0);
  for (let at = 0; at < count; at++) {
    const id = idOf(at);
    if (weights[id]! > 0) last = id;
    reached += weights[id]!;
    if (reached > goal) return id;
  }
  return last;
}

/** Ids that top-k and top-p leave, most likely first, ties by id; null where neither is set. */
function restrict(weights: Float64Array, total: number, { topK, topP = 1 }: Sampling): Int32Array | null {
  const hasTopK = topK !== undefined && topK < weights.length;
  if (topP === 1 && !hasTopK) return null;
  // Sorting the few that can be needed is far cheaper: the k-th largest weight, or one below which all ids together hold
  // less than 1 − p.
  const floor = hasTopK
    ? Float64Array.from(weights).sort()[weights.length - topK]!
    : ((1 - topP) * total) / weights.length;
  const ids: number[] = [];
  for (let id = 0; id < weights.length; id++) if (weights[id]! >= floor) ids.push(id);
  const likely = Int32Array.from(ids).sort((a, b) => weights[b]! - weights[a]! || a - b);
  const kept = hasTopK ? likely.subarray(0, topK) : likely;
  if (topP === 1) return kept;
  let mass = total;
  if (hasTopK) {
    mass = 0;
    for (const id of kept) mass += weights[id]!;
  }
  let reached = 0;
  const end = kept.findIndex((id) => (reached += weights[id]!) >= topP * mass);
  return end === -1 ? kept : kept.subarray(0, end + 1);
}

const samplingNames = {
  maxNewTokens: true,
  temperature: true,
  topP: true,
  topK: true,
  stop: true,
  topTokens: true,
  seed: true,
} as const satisfies Record<keyof Sampling, true>;

/** @throws PeriodicEvalError `config` naming the setting that is out of range. */
export function checkSampling(sampling: Sampling): void {
  checkKeys("sampling", sampling, Object.keys(samplingNames));
  const { maxNewTokens, temperature, topP = 1, topK = 1, stop = [], topTokens = 0 } = sampling;
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
  if (!Number.isInteger(topTokens) || topTokens < 0)
    refuse("topTokens", topTokens, "an integer from 0; here nothing comes of it");
  if (stop.includes("")) refuse("stop", stop, "strings that are not empty");
}
