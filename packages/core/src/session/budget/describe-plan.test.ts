import { expect, it } from "vitest";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { fewerQuestions } from "./describe-plan.ts";

it("names the option for fewer questions only if a callback has one", () => {
  expect(fewerQuestions([new PeriodicCapabilityCallback()])).toBe(
    " Or ask fewer questions: subsample of the callback; in YAML subsample_n.",
  );
  expect(fewerQuestions([{ id: "custom" }])).toBe("");
});
