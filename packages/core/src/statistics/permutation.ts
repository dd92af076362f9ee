import { fastStream } from "../random/streams.ts";
import { normalQuantile } from "./distributions.ts";
import { z95, type Estimate } from "./intervals.ts";
import { power } from "./paired.ts";

/** The values of one question's completions at two looks; neither list is empty. */
export interface QuestionPair {
  readonly now: readonly number[];
  readonly before: readonly number[];
}

const most = 10_000;

/**
 * Two-sided permutation test of completions between two looks within each question: had the model not changed, a
 * question's completions would be exchangeable between the looks. It speaks of these questions (`given_questions`).
 *
 * - `value`: the question-wise differences of means, weighted by n₁n₀/(n₁+n₀): the plain difference of means where every
 *   question has equally many completions at both looks.
 * - `p`: exact for zeros and ones (hypergeometric distributions convolved) and where there are at most 10,000
 *   arrangements; else from 10,000 draws, (hits + 1) / (draws + 1).
 * - `stderr`: of the permutation distribution, from which the normal interval; null where nothing varied.
 */
export function permutationTest(
  questions: readonly QuestionPair[],
  seed: string,
): Estimate & { readonly p: number | null } {
  const parts = questions.map(partOf);
  const weight = parts.reduce((sum, part) => sum + part.weight, 0);
  if (weight === 0) return { value: null, stderr: null, ci95: null, p: null };
  const excess = parts.reduce((sum, part) => sum + part.excess, 0);
  const value = excess / weight;
  const variance = parts.reduce((sum, part) => sum + part.variance, 0);
  const varied = parts.filter((part) => part.variance > 0);
  if (varied.length === 0) return { value, stderr: null, ci95: null, p: 1 };
  const stderr = Math.sqrt(variance) / weight;
  return {
    value,
    stderr,
    ci95: [value - z95 * stderr, value + z95 * stderr],
    p: twoSided(varied, Math.abs(excess), seed),
  };
}

/** Smallest change that a permutation test at level `alpha` finds four times in five, by the normal approximation. */
export function detectableSampled(stderr: number | null, alpha: number): number | null {
  return stderr === null || alpha <= 0
    ? null
    : (normalQuantile(1 - alpha / 2) + normalQuantile(power)) * stderr;
}

interface Part {
  /** Deviations from the question's mean over both looks. */
  readonly deviations: readonly number[];
  readonly countNow: number;
  /** Σ deviations now: what the permutation changes; its mean is 0. */
  readonly excess: number;
  readonly variance: number;
  readonly weight: number;
  /** Ones among the values, where all are zeros and ones. */
  readonly hits: number | null;
}

function partOf({ now, before }: QuestionPair): Part {
  const all = [...now, ...before];
  const sum = all.reduce((total, value) => total + value, 0);
  const isConstant = all.every((value) => value === all[0]);
  const deviations = all.map((value) => (isConstant ? 0 : value - sum / all.length));
  const weight = (now.length * before.length) / all.length;
  const squares = deviations.reduce((total, deviation) => total + deviation * deviation, 0);
  return {
    deviations,
    countNow: now.length,
    excess: deviations.slice(0, now.length).reduce((total, deviation) => total + deviation, 0),
    variance: (weight * squares) / (all.length - 1),
    weight,
    hits: all.every((value) => value === 0 || value === 1) ? sum : null,
  };
}

function twoSided(parts: readonly Part[], observed: number, seed: string): number {
  // Sums of the same numbers in another order differ in their last digits; they still count as ties.
  const isAsFar = (excess: number) => Math.abs(excess) >= observed * (1 - 1e-9) - 1e-12;
  if (parts.every((part) => part.hits !== null)) return byConvolution(parts, isAsFar);
  const arrangements = parts.reduce(
    (count, part) => count * choose(part.deviations.length, part.countNow),
    1,
  );
  return arrangements <= most ? byEnumeration(parts, isAsFar) : byDraws(parts, isAsFar, seed);
}

function byConvolution(parts: readonly Part[], isAsFar: (excess: number) => boolean): number {
  let offset = 0;
  let distribution: readonly number[] = [1];
  for (const { deviations, countNow, hits } of parts) {
    const { fewest, probabilities } = hypergeometric(deviations.length, hits!, countNow);
    offset += fewest - (hits! * countNow) / deviations.length;
    const next = Array<number>(distribution.length + probabilities.length - 1).fill(0);
    distribution.forEach((p, i) => probabilities.forEach((q, j) => (next[i + j]! += p * q)));
    distribution = next;
  }
  return Math.min(
    1,
    distribution.reduce((sum, p, i) => (isAsFar(i + offset) ? sum + p : sum), 0),
  );
}

/** Of `hits` ones among `total` values, how many fall among the first `drawn`. Logarithms: the binomials may overflow. */
function hypergeometric(
  total: number,
  hits: number,
  drawn: number,
): { fewest: number; probabilities: number[] } {
  const fewest = Math.max(0, drawn + hits - total);
  const logs = [0];
  for (let k = fewest; k < Math.min(hits, drawn); k++) {
    const ratio = ((drawn - k) * (hits - k)) / ((k + 1) * (total - drawn - hits + k + 1));
    logs.push(logs.at(-1)! + Math.log(ratio));
  }
  const largest = Math.max(...logs);
  const weights = logs.map((log) => Math.exp(log - largest));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return { fewest, probabilities: weights.map((weight) => weight / sum) };
}

function byEnumeration(parts: readonly Part[], isAsFar: (excess: number) => boolean): number {
  let sums = [0];
  for (const { deviations, countNow } of parts) {
    const subsets = excessSums(deviations, countNow);
    sums = sums.flatMap((sum) => subsets.map((subset) => sum + subset));
  }
  return sums.filter(isAsFar).length / sums.length;
}

/** The sums of all subsets of `count` values that sum to 0 in all; of many values the few left out are summed. */
function excessSums(values: readonly number[], count: number): readonly number[] {
  const left = values.length - count;
  return count <= left ? subsetSums(values, count) : subsetSums(values, left).map((sum) => -sum);
}

function subsetSums(values: readonly number[], count: number): readonly number[] {
  if (count === 0) return [0];
  return values.flatMap((value, i) => subsetSums(values.slice(i + 1), count - 1).map((sum) => value + sum));
}

function byDraws(parts: readonly Part[], isAsFar: (excess: number) => boolean, seed: string): number {
  const random = fastStream(seed);
  let hits = 0;
  const pools = parts.map((part) => Float64Array.from(part.deviations));
  for (let draw = 0; draw < most; draw++) {
    let excess = 0;
    parts.forEach(({ countNow }, q) => (excess += shuffledSum(pools[q]!, countNow, random)));
    if (isAsFar(excess)) hits++;
  }
  return (hits + 1) / (most + 1);
}

/** Moves `count` values drawn without replacement to the front of the pool and sums them. */
function shuffledSum(pool: Float64Array, count: number, random: () => number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (pool.length - i));
    const drawn = pool[j]!;
    pool[j] = pool[i]!;
    pool[i] = drawn;
    sum += drawn;
  }
  return sum;
}

export function choose(n: number, k: number): number {
  let product = 1;
  for (let i = 1; i <= k; i++) product *= (n - k + i) / i;
  return Math.round(product);
}
