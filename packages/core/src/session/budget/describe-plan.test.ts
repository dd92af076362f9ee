import { expect, it } from "vitest";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { describeStepTime, fewerQuestions } from "./describe-plan.ts";

it("names the option for fewer questions only if a callback has one", () => {
  expect(fewerQuestions([new PeriodicCapabilityCallback()], {})).toBe(
    " Or ask fewer questions: subsample of the callback.",
  );
  expect(fewerQuestions([new PeriodicCapabilityCallback()], { inBlock: true })).toMatch(/: subsample_n\.$/);
  expect(fewerQuestions([{ id: "custom" }], {})).toBe("");
});

it("says how long a step must take for all measurements, and what to leave out if steps are faster", () => {
  const evaluations = [
    { id: "capability", seconds: 60 },
    { id: "refusal", seconds: 200 },
    { id: "forgetting", seconds: 140 },
  ];
  const budget = { overheadPercent: 20, graceSeconds: 60, secondsPerWindow: null };
  const all = { seconds: 400, evaluations, maxSteps: 200, budget };
  expect(describeStepTime(all)).toBe(
    "all measurements take 400 s. They stay under 20 % overhead if a step takes at least 10 s; without refusal, at least 5 s; without refusal, forgetting, any",
  );
  expect(describeStepTime({ ...all, budget: { ...budget, graceSeconds: 400 } })).toBeNull();
  expect(describeStepTime({ ...all, budget: { ...budget, overheadPercent: null } })).toBeNull();
  expect(describeStepTime({ ...all, budget: { ...budget, secondsPerWindow: 5 } })).toBeNull();
});
