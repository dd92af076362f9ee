import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { expect, it } from "vitest";
import { onInterrupt } from "./interrupt.ts";

it.each([
  ["says what a command waits for if it has not ended two seconds after a signal", 2500, 1],
  ["says nothing about a command that ends sooner", 10, 0],
])("%s", async (_, milliseconds, lines) => {
  const told: string[] = [];
  const { signal, stopListening } = onInterrupt({ err: (text) => told.push(text) });
  const aborted = once(signal, "abort");
  process.emit("SIGTERM");
  await aborted;
  await setTimeout(milliseconds);
  stopListening();
  await setTimeout(2500 - milliseconds);
  expect(told).toEqual(
    Array.from({ length: lines }, () => expect.stringContaining("second signal") as string),
  );
});
