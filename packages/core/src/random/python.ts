import MersenneTwister from "mersenne-twister";
import { configError, isCount } from "@periodic-eval/contracts/options";

/**
 * Python's `random.Random(seed)` for integer seeds: MT19937 (Matsumoto and Nishimura 1998), seeded by `init_by_array` with the
 * 32-bit words of |seed|, lowest first, as in CPython 3.11 `Modules/_randommodule.c`.
 */
export interface PythonRandom {
  /** `getrandbits(bits)` for 1 to 32 bits: returns an integer in [0, 2^bits). */
  readonly getrandbits: (bits: number) => number;
  /**
   * `sample(range(n), k)`: returns k distinct integers of 0 … n−1, in the order drawn. n is below 2^32.
   *
   * @throws PeriodicEvalError `config` if k is larger than n.
   */
  readonly sample: (n: number, k: number) => readonly number[];
}

/** Returns the generator for a seed, a safe integer. The sign of the seed is ignored, as in Python. */
export function pythonRandom(seed: number): PythonRandom {
  const twister = new MersenneTwister(wordsOf(Math.abs(seed)));
  const getrandbits = (bits: number) => twister.random_int() >>> (32 - bits);
  /** Returns an integer in [0, n), by rejection sampling. */
  const randbelow = (n: number) => {
    const bits = n.toString(2).length;
    let drawn = getrandbits(bits);
    while (drawn >= n) drawn = getrandbits(bits);
    return drawn;
  };
  return { getrandbits, sample: (n, k) => sampled(randbelow, n, k) };
}

/**
 * CPython 3.11 `Lib/random.py`: draws from a shrinking list if that is smaller than a set of the integers drawn so far, else
 * collects such a set.
 */
function sampled(randbelow: (n: number) => number, n: number, k: number): readonly number[] {
  if (!isCount(n) || n >= 2 ** 32 || !isCount(k) || k > n) {
    throw configError({
      where: "pythonRandom.sample",
      got: `${k} of ${n}`,
      expected: "integers with 0 ≤ k ≤ n < 2^32",
      fix: "Draw at most n integers.",
    });
  }
  const setSize = 21 + (k > 5 ? 4 ** Math.ceil(Math.log(k * 3) / Math.log(4)) : 0);
  if (n <= setSize) {
    const pool = Array.from({ length: n }, (_, at) => at);
    return Array.from({ length: k }, (_, i) => {
      const at = randbelow(n - i);
      const drawn = pool[at]!;
      pool[at] = pool[n - i - 1]!;
      return drawn;
    });
  }
  const taken = new Set<number>();
  while (taken.size < k) taken.add(randbelow(n));
  return [...taken];
}

const wordsOf = (value: number): number[] =>
  value < 2 ** 32 ? [value] : [value >>> 0, Math.floor(value / 2 ** 32)];
