import * as z from "zod";
import type { Sampling } from "@periodic-eval/contracts";
import {
  integerFromZero,
  numberFromZero,
  numberToOne,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import { exponential } from "./exponential.ts";

export interface Drawn {
  readonly token: number;
  /** log p of the token in the model's distribution, before temperature, top-k and top-p. */
  readonly nats: number;
}

/**
 * Draws one token in double precision on the host: applies temperature, then top-k, then top-p, in the order of Hugging Face's
 * logits processors. Ties are ordered by id. Always takes exactly one number from `random`.
 *
 * @param logits Logits of one position, [V].
 * @param random Returns numbers in [0, 1).
 */
export function drawToken(logits: Float32Array, sampling: Sampling, random: () => number): Drawn {
  const { top, weights, total, partition } = weighed(logits, sampling.temperature);
  const kept = restrict(weights, total, sampling);
  const token = kept === null ? drawn(weights, random()) : idAt(drawn(kept, random()), kept, weights);
  return { token, nats: logits[token]! - top - Math.log(partition) };
}

/**
 * Returns exp((logit − top) / T) of each token, their sum, and the sum at T = 1. Plain loops here and below, because they run over
 * the vocabulary for every drawn token.
 */
function weighed(logits: Float32Array, temperature: number) {
  let top = -Infinity;
  for (let id = 0; id < logits.length; id++) if (logits[id]! > top) top = logits[id]!;
  const weights = reused("weights", logits.length);
  const partition = setWeights(weights, logits, top, 1);
  const total = temperature === 1 ? partition : setWeights(weights, logits, top, temperature);
  return { top, weights, partition, total };
}

/** Memory that every draw overwrites: allocating it takes a tenth of a draw. */
const memory = { weights: new Float64Array(0), sorted: new Float64Array(0) };

function reused(name: keyof typeof memory, length: number): Float64Array {
  if (memory[name].length !== length) memory[name] = new Float64Array(length);
  return memory[name];
}

function setWeights(weights: Float64Array, logits: Float32Array, top: number, temperature: number): number {
  let sum = 0;
  for (let id = 0; id < logits.length; id++) {
    const weight = exponential((logits[id]! - top) / temperature);
    weights[id] = weight;
    sum += weight;
  }
  return sum;
}

/** Returns the index at which the cumulated weight passes `share` of the total. */
function drawn(weights: Float64Array, share: number): number {
  let mass = 0;
  for (let at = 0; at < weights.length; at++) mass += weights[at]!;
  const goal = share * mass;
  let reached = 0;
  // If rounding leaves `reached` below `goal` at the end, the last one with a weight is drawn.
  let last = 0;
  for (let at = 0; at < weights.length; at++) {
    if (weights[at]! > 0) last = at;
    reached += weights[at]!;
    if (reached > goal) return at;
  }
  return last;
}

/** Returns the weights that top-k and top-p keep, largest first; null if neither is set. */
function restrict(weights: Float64Array, total: number, { topK, topP = 1 }: Sampling): Float64Array | null {
  const hasTopK = topK !== undefined && topK < weights.length;
  if (!hasTopK) return topP === 1 ? null : largest(weights, total, topP * total, weights.length);
  const kept = largest(weights, total, Infinity, topK);
  return topP === 1 ? kept : kept.subarray(0, countTo(topP * kept.reduce((sum, one) => sum + one, 0), kept));
}

/**
 * Returns the largest weights, largest first: `count`, or fewer if they reach a mass. Sorts them in bands, because few are needed of
 * a large vocabulary. The kernel for native TensorFlow (draws.h) has the same bands.
 */
function largest(weights: Float64Array, total: number, mass: number, count: number): Float64Array {
  const sorted = reused("sorted", weights.length);
  let found = 0;
  let [floor, above] = [total / 256, Infinity];
  for (;;) {
    const before = found;
    for (let id = 0; id < weights.length; id++) {
      const weight = weights[id]!;
      if (weight >= floor && weight < above) sorted[found++] = weight;
    }
    sorted.subarray(before, found).sort().reverse();
    const enough = Math.min(countTo(mass, sorted.subarray(0, found)), count);
    if (enough < found || floor === 0) return sorted.subarray(0, enough);
    [floor, above] = [floor > smallestBandShare * total ? floor / 8 : 0, floor];
  }
}

/** Below this share of the total, weights are not worth a separate band. */
const smallestBandShare = 1e-12;

/** Returns how many weights are needed to reach a mass. All, if they do not. */
function countTo(mass: number, weights: Float64Array): number {
  let reached = 0;
  for (let at = 0; at < weights.length; at++) {
    reached += weights[at]!;
    if (reached >= mass) return at + 1;
  }
  return weights.length;
}

/** Returns the id of a kept weight. Equal weights are kept in the order of their ids. */
function idAt(at: number, kept: Float64Array, weights: Float64Array): number {
  let id = weights.indexOf(kept[at]!);
  for (let equal = at - kept.indexOf(kept[at]!); equal > 0; equal--) id = weights.indexOf(kept[at]!, id + 1);
  return id;
}

export const samplingSchema = z.strictObject({
  maxNewTokens: positiveInteger,
  temperature: numberFromZero("a number of 0 (greedy) or more"),
  topP: numberToOne("a number in (0, 1]").optional(),
  topK: positiveInteger.meta({ fix: "Omit topK to sample from all tokens." }).optional(),
  stop: z.array(z.string().min(1)).optional(),
  topTokens: integerFromZero.optional(),
  seed: z.string(),
} satisfies Record<keyof Sampling, z.ZodType>);
