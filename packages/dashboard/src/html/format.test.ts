import { expect, it } from "vitest";
import { describePaired, formatNumber, formatSeconds } from "./format.ts";

it.each([
  [null, "–"],
  [0.004, "0.00 s"],
  // Rounding carries over: the results 10.00 s, 60.0 s, 60 s and 60 min are impossible.
  [9.996, "10.0 s"],
  [59.96, "1 min 0 s"],
  [119.6, "2 min 0 s"],
  [61.4, "1 min 1 s"],
  [3599.6, "1 h 0 min"],
  // 2 h 5 min 40 s: hours and whole minutes.
  [7540, "2 h 6 min"],
])("formats %j seconds as %s", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

it.each([
  [0, "0"],
  [1.24774, "1.248"],
  [-0.32, "-0.32"],
  [29_000, "29000"],
  [1_560_000_000_000, "1.56e12"],
  [0.00001, "1.0e-5"],
  [0.000191, "1.91e-4"],
])("formats %j as %s", (value, text) => {
  expect(formatNumber(value)).toBe(text);
});

it("names the id or the run of a comparison's baseline", () => {
  const paired = {
    phase: "em",
    step: 0,
    n_pairs: 4,
    delta: -0.25,
    ci95: null,
    test: null,
    p_value: null,
    alpha: null,
    minimal_detectable_change: null,
    verdict: null,
    exploratory: true,
  };
  expect(describePaired({ ...paired, id: "capability.adapter_off" }, "share")).toContain(
    "against em step 0 of capability.adapter_off: ",
  );
  expect(describePaired({ ...paired, run: "runs/1" }, "share")).toContain(
    "against em step 0 of the run runs/1: ",
  );
});
