import { afterEach, expect, it, vi } from "vitest";
import { withMinuteLines } from "./minute-lines.ts";

afterEach(() => void vi.useRealTimers());

it("logs a line a minute since the last sign of progress, and none after the work", async () => {
  vi.useFakeTimers();
  const lines: string[] = [];
  let progressed = () => {};
  let end = (_value: number) => {};
  const result = withMinuteLines(
    (line) => lines.push(line),
    (seconds) => `${seconds} s`,
    (sign) => {
      progressed = sign;
      return new Promise<number>((resolve) => (end = resolve));
    },
  );
  vi.advanceTimersByTime(125_000);
  expect(lines).toEqual(["60 s", "120 s"]);
  progressed();
  vi.advanceTimersByTime(59_000);
  expect(lines).toHaveLength(2);
  vi.advanceTimersByTime(1000);
  expect(lines).toEqual(["60 s", "120 s", "60 s"]);
  end(7);
  expect(await result).toBe(7);
  vi.advanceTimersByTime(600_000);
  expect(lines).toHaveLength(3);
});
