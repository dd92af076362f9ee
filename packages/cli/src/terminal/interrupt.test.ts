import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { onInterrupt } from "./interrupt.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

it.each([
  ["prints a notice if a command has not ended two seconds after a signal", 2000, 1],
  ["prints nothing if a command ends sooner", 1999, 0],
])("%s", (_, milliseconds, count) => {
  const printed: string[] = [];
  const { signal, stopListening } = onInterrupt({ err: (text) => printed.push(text) });
  process.emit("SIGTERM");
  expect(signal.aborted).toBe(true);
  vi.advanceTimersByTime(milliseconds);
  stopListening();
  vi.runAllTimers();
  const notice = "The command finishes its current step first. Press Ctrl-C again to end it at once.";
  expect(printed).toEqual(Array.from({ length: count }, () => notice));
});
