import { expect, it } from "vitest";
import { formatSeconds } from "./format.ts";

it.each([
  [null, "–"],
  [0.004, "0.00 s"],
  // Rounding carries: never 10.00 s, 60.0 s, 60 s or 60 min.
  [9.996, "10.0 s"],
  [59.96, "1 min 0 s"],
  [119.6, "2 min 0 s"],
  [61.4, "1 min 1 s"],
  [3599.6, "1 h 0 min"],
  // 2 h 5 min 40 s: hours and whole minutes.
  [7540, "2 h 6 min"],
])("%j seconds are %s", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});
