import { expect, it } from "vitest";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { describeNeed, fewerQuestions } from "./describe-plan.ts";

it("names the option for fewer questions only if a callback has one", () => {
  expect(fewerQuestions([new PeriodicCapabilityCallback()])).toBe(
    " Or ask fewer questions: subsample of the callback; in YAML subsample_n.",
  );
  expect(fewerQuestions([{ id: "custom" }])).toBe("");
});

it("says how slow training must be for all measurements, and what to leave out of a faster one", () => {
  const parts = [
    { id: "capability", seconds: 60 },
    { id: "refusal", seconds: 200 },
    { id: "forgetting", seconds: 140 },
  ];
  const need = { total: 400, parts, maxSteps: 200, overheadPercent: 20, graceSeconds: 60 };
  expect(describeNeed(need)).toBe(
    "400 s of measuring with start and end fit under 20 % of training if a step takes at least 10 s; without refusal if a step takes at least 5 s; without refusal, forgetting at any speed",
  );
  expect(describeNeed({ ...need, graceSeconds: 400 })).toBeNull();
  expect(describeNeed({ ...need, overheadPercent: null })).toBeNull();
});
