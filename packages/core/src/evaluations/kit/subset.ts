import { configError, isCount } from "@periodic-eval/contracts/options";
import { pythonRandom } from "../../random/python.ts";

/**
 * Returns the seeded order in which items are used: a permutation of 0 … n−1. Its first m values are Python's
 * `random.Random(seed).sample(range(n), m)` for every m for which Python draws by rejection (m small compared with n, as 200
 * of 1,172). The same rule continues until all values are drawn.
 *
 * @throws PeriodicEvalError `config` for a seed that is not a safe integer or an n outside 0 … 2³² − 1.
 */
export function subsetOrder(seed: number, n: number): number[] {
  if (!Number.isSafeInteger(seed)) throw notAnInteger("seed", seed);
  if (!isCount(n) || n >= 2 ** 32) throw notAnInteger("n", n);
  const { getrandbits } = pythonRandom(seed);
  const bits = n.toString(2).length;
  const taken = new Uint8Array(n);
  const order: number[] = [];
  while (order.length < n) {
    const draw = getrandbits(bits);
    if (draw >= n || taken[draw] === 1) continue;
    taken[draw] = 1;
    order.push(draw);
  }
  return order;
}

/**
 * Returns the first `n` items in the order of `subsetOrder`, or all of them if `n` is null or larger than their number.
 * Subsets with the same seed are nested.
 *
 * @throws PeriodicEvalError `config` for a wrong `n` or seed.
 */
export function nestedSubset<T>(
  items: readonly T[],
  { n, seed }: { readonly n: number | null; readonly seed: number },
): T[] {
  if (n !== null && !isCount(n, 1)) throw notAnInteger("n", n);
  return subsetOrder(seed, items.length)
    .slice(0, n ?? items.length)
    .map((index) => items[index]!);
}

const notAnInteger = (name: "seed" | "n", got: number) =>
  configError({
    where: "subset",
    path: [name],
    value: got,
    expected: name === "seed" ? "a safe integer" : "a positive integer",
    fix: `Pass an integer as ${name}.`,
  });
