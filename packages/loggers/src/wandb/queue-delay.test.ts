import { createRequire } from "node:module";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { shortenWaits, type QueueDelay } from "./queue-delay.ts";

// The class is not exported by the SDK.
const sdk = createRequire(import.meta.url).resolve("@wandb/sdk/package.json");
const { Delay } = (await import(new URL("dist/sdk/lib/retry.js", `file://${sdk}`).href)) as {
  readonly Delay: new (milliseconds: number) => QueueDelay;
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function millisecondsOf(delay: QueueDelay, milliseconds?: number): Promise<number> {
  const from = Date.now();
  const waited = delay.wait(milliseconds).then(() => Date.now() - from);
  await vi.runAllTimersAsync();
  return waited;
}

it("shortens the delay of a queue while an answer is awaited, but not the delay between retries", async () => {
  const [queue, retry] = [new Delay(1000), new Delay(1500)];
  let isAwaited = true;
  shortenWaits(queue, () => isAwaited);
  expect(await millisecondsOf(queue)).toBe(20);
  expect(await millisecondsOf(queue, 2000)).toBe(20);
  expect(await millisecondsOf(retry)).toBe(1500);
  isAwaited = false;
  expect(await millisecondsOf(queue)).toBe(1000);
  expect(await millisecondsOf(queue, 2000)).toBe(2000);
});

it("keeps a pending delay cancellable and ignores a queue without one", async () => {
  const queue = new Delay(1000);
  shortenWaits(queue, () => false);
  const waited = queue.wait();
  queue.cancel();
  expect(await waited).toBeNull();
  expect(() => shortenWaits(undefined, () => true)).not.toThrow();
});
