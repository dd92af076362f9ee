import { nextTurn } from "@periodic-eval/core/internal";

/** A slice has at most this number of texts and, beyond its first text, of characters: it is encoded in a fraction of a second. */
const [mostTexts, mostCharacters] = [256, 2 ** 16];

/**
 * Runs `work` for parts of a long body, one after the other. In between, the service answers requests that need no model: encoding
 * 60,000 texts at once would block it for half a minute.
 *
 * @returns The results of all parts, in order.
 */
export async function inSlices<T, R>(
  items: readonly T[],
  work: (slice: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const results: R[] = [];
  let slice: T[] = [];
  let characters = 0;
  for (const item of items) {
    const size = JSON.stringify(item).length;
    if (slice.length === mostTexts || (slice.length > 0 && characters + size > mostCharacters)) {
      results.push(...(await work(slice)));
      await nextTurn();
      [slice, characters] = [[], 0];
    }
    slice.push(item);
    characters += size;
  }
  if (slice.length > 0) results.push(...(await work(slice)));
  return results;
}
