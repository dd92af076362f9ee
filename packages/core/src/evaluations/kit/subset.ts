import { pythonRandom } from "../../random/python.ts";

/**
 * Returns the seeded order in which items are used: a permutation of 0 … n−1. Its first m values are Python's
 * `random.Random(seed).sample(range(n), m)` for every m for which Python draws by rejection (m small compared with n, as 200
 * of 1,172). The same rule continues until all values are drawn.
 *
 * @param seed A safe integer.
 */
export function subsetOrder(seed: number, n: number): number[] {
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

/** All items, in a seeded order: a smaller budget uses the first ones. */
export const everyItem = { n: null, seed: 42 };

/**
 * Returns the first `n` items in the order of `subsetOrder`, or all of them if `n` is null or larger than their number.
 * Subsets with the same seed are nested.
 */
export function nestedSubset<T>(
  items: readonly T[],
  { n, seed }: { readonly n: number | null; readonly seed: number },
): T[] {
  return subsetOrder(seed, items.length)
    .slice(0, n ?? items.length)
    .map((index) => items[index]!);
}
