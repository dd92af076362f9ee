import { nextTurn } from "@periodic-eval/core/internal";

/** Texts of this number are encoded and decoded in a fraction of a second. */
const sliceLength = 256;

/**
 * Runs `work` for parts of a long body, one after the other. The service answers other requests in between: encoding 60,000 texts at
 * once would block it for half a minute.
 *
 * @returns The results of all parts, in order.
 */
export async function inSlices<T, R>(
  items: readonly T[],
  work: (slice: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += sliceLength) {
    if (from > 0) await nextTurn();
    results.push(...(await work(items.slice(from, from + sliceLength))));
  }
  return results;
}
