import type { Awaitable } from "@periodic-eval/contracts";

/**
 * Does `work` for one item after the other, synchronously as long as it returns no promise: a training step without requests costs
 * no turn of the event loop.
 */
export function inOrder<T>(items: readonly T[], work: (item: T) => unknown): Awaitable<void> {
  for (let at = 0; at < items.length; at++) {
    const answer = work(items[at]!);
    if (isPromise(answer)) return finish(answer, items.slice(at + 1), work);
  }
}

async function finish<T>(first: unknown, rest: readonly T[], work: (item: T) => unknown): Promise<void> {
  await first;
  for (const item of rest) await work(item);
}

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}
