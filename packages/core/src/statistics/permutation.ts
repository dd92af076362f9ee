import { fastStream } from "../random/streams.ts";
import { normalQuantile } from "./distributions.ts";
import { z95, type Estimate } from "./intervals.ts";
import { power } from "./planned-comparisons.ts";

/** The values of one question's completions at two measurements; neither list is empty. */
export interface QuestionPair {
  readonly now: readonly number[];
  readonly before: readonly number[];
}

export interface PermutationResult extends Estimate {
  readonly p: number | null;
  /** Σ n₁n₀/(n₁+n₀) over the questions. */
  readonly weight: number;
  /** Share of ones in both measurements; null if there are other values than zeros and ones. */
  readonly share: number | null;
}

/** Largest number of arrangements to enumerate, and the number of random draws beyond it. */
const maxArrangements = 10_000;

/**
 * Compares the completions of two measurements with a two-sided permutation test within each question: if the model did not
 * change, a question's completions are exchangeable between the measurements. The result is about these questions
 * (`given_questions`).
 *
 * - `value`: the differences of means per question, weighted by n₁n₀/(n₁+n₀). It is the plain difference of means if every
 *   question has equally many completions at both measurements.
 * - `p`: exact for zeros and ones (a convolution of hypergeometric distributions) and for at most 10,000 arrangements;
 *   otherwise from 10,000 random draws, (hits + 1) / (draws + 1).
 * - `stderr`: of the permutation distribution; `ci95` is the normal interval from it. Null if nothing varied.
 *
 * @param seed Names the random stream of the draws.
 */
export function permutationTest(questions: readonly QuestionPair[], seed: string): PermutationResult {
  const parts = questions.map(partOf);
  const weight = parts.reduce((sum, part) => sum + part.weight, 0);
  if (weight === 0) return { value: null, stderr: null, ci95: null, p: null, weight, share: null };
  const share = shareOf(parts);
  const excess = parts.reduce((sum, part) => sum + part.excess, 0);
  const value = excess / weight;
  const variance = parts.reduce((sum, part) => sum + part.variance, 0);
  const varied = parts.filter((part) => part.variance > 0);
  if (varied.length === 0) return { value, stderr: null, ci95: null, p: 1, weight, share };
  const stderr = Math.sqrt(variance) / weight;
  return {
    value,
    stderr,
    ci95: [value - z95 * stderr, value + z95 * stderr],
    p: twoSided(varied, Math.abs(excess), seed),
    weight,
    share,
  };
}

/**
 * Returns the smallest change that a permutation test at level `alpha` detects with power 0.8 (normal approximation). For zeros and
 * ones, a change also changes the variance: 0 of 40 answers at both measurements say how many answers there were, not that any
 * change would have been seen.
 */
export function detectableSampled(
  { stderr, weight, share }: Pick<PermutationResult, "stderr" | "weight" | "share">,
  alpha: number,
): number | null {
  if (alpha <= 0) return null;
  const quantiles = normalQuantile(1 - alpha / 2) + normalQuantile(power);
  if (share === null) return stderr === null ? null : quantiles * stderr;
  // d² = quantiles² · (stderr² + (d/2 · (1 − 2 share) − d²/4) / weight), for a change away from the nearer of 0 and 1.
  const ofShare = (quantiles * quantiles) / weight;
  const linear = (ofShare * (1 - 2 * Math.min(share, 1 - share))) / 2;
  const square = 1 + ofShare / 4;
  const constant = (quantiles * (stderr ?? 0)) ** 2;
  return (linear + Math.sqrt(linear * linear + 4 * square * constant)) / (2 * square);
}

interface Part {
  /** Deviations from the question's mean over both measurements. */
  readonly deviations: readonly number[];
  readonly countNow: number;
  /** Σ deviations now: the test statistic, whose mean over permutations is 0. */
  readonly excess: number;
  readonly variance: number;
  readonly weight: number;
  /** Number of ones, if all values are zeros and ones; else null. */
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

function shareOf(parts: readonly Part[]): number | null {
  const sum = (of: (part: Part) => number) => parts.reduce((total, part) => total + of(part), 0);
  return parts.some(({ hits }) => hits === null)
    ? null
    : sum(({ hits }) => hits!) / sum(({ deviations }) => deviations.length);
}

function twoSided(parts: readonly Part[], observed: number, seed: string): number {
  // Sums of the same numbers in another order differ in their last digits and still count as ties.
  const isAsFar = (excess: number) => Math.abs(excess) >= observed * (1 - 1e-9) - 1e-12;
  if (parts.every((part) => part.hits !== null)) return byConvolution(parts, isAsFar);
  const arrangements = parts.reduce(
    (count, part) => count * choose(part.deviations.length, part.countNow),
    1,
  );
  return arrangements <= maxArrangements ? byEnumeration(parts, isAsFar) : byDraws(parts, isAsFar, seed);
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

/**
 * Returns the distribution of the number of ones among `drawn` of `total` values that include `hits` ones. Computed in
 * logarithms, because the binomial coefficients may overflow.
 */
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

/** Returns the sums of all subsets of `count` values. The values sum to 0, so it may sum the smaller complement instead. */
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
  for (let draw = 0; draw < maxArrangements; draw++) {
    let excess = 0;
    parts.forEach(({ countNow }, q) => (excess += shuffledSum(pools[q]!, countNow, random)));
    if (isAsFar(excess)) hits++;
  }
  return (hits + 1) / (maxArrangements + 1);
}

/** Draws `count` values without replacement, moves them to the front of the pool and returns their sum. */
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

/** Returns the binomial coefficient C(n, k). */
export function choose(n: number, k: number): number {
  let product = 1;
  for (let i = 1; i <= k; i++) product *= (n - k + i) / i;
  return Math.round(product);
}
