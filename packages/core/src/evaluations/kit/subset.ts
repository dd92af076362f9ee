import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import { pythonRandom } from "../../random/python.ts";

/**
 * The seeded order in which items are taken: a permutation of 0 … n−1 whose first m values are
 * `random.Random(seed).sample(range(n), m)` of Python, for every m where Python draws by rejection (m small against n,
 * as 200 of 1,172), and go on by the same rule to exhaustion.
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

/** The first `n` items in the order of `subsetOrder`; all of them, in that order, where `n` is null or larger. Subsets of one seed are nested. */
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
  new PeriodicEvalError({
    code: "config",
    where: `subset ${name}`,
    got: String(got),
    expected: name === "seed" ? "a safe integer" : "a positive integer",
    fix: `Give a whole number for ${name}.`,
  });
