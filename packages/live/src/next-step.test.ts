import { describe, expect, it } from "vitest";
import type { Progress, Trigger } from "@periodic-eval/contracts";
import {
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "@periodic-eval/core";
import { nextStep } from "./next-step.ts";

const next = (triggers: readonly Trigger[], at: Partial<Progress>) =>
  nextStep([{ id: "a", triggers }], {
    step: 0,
    maxSteps: null,
    epoch: 0,
    elapsedSeconds: 0,
    ended: false,
    ...at,
  });

describe("the next step of a phase", () => {
  // At step 10, after 0.1 epochs and 5 seconds.
  it.each([
    ["steps", everySteps(100), 100],
    ["steps, the next one", everySteps(1), 11],
    ["a list of steps", atSteps([7, 12]), 12],
    ["a list of steps that are over", atSteps([7]), null],
    // Estimated thresholds are approached in halves.
    ["epochs", everyEpochs(1), 55],
    ["a small part of an epoch", everyEpochs(0.001), 11],
    ["seconds", everySeconds(60), 65],
    ["few seconds", everySeconds(1), 11],
    ["percents", everyPercent(10), null],
    ["times", timesPerPhase(4), null],
  ] as const)("is known without its number of steps, with a schedule in %s", (_, trigger, step) => {
    const at = { step: 10, epoch: 0.1, elapsedSeconds: 5 };
    expect(next([trigger], at)).toBe(step);
    const last = Number.MAX_SAFE_INTEGER;
    if (step !== null) expect(next([trigger], { ...at, maxSteps: last })).toBe(step);
  });

  it("is twice as far while nothing is known of the pace", () => {
    for (const trigger of [everyEpochs(1), everySeconds(60)]) {
      expect(next([trigger], {})).toBe(1);
      expect(next([trigger], { step: 10 })).toBe(20);
    }
    expect(next([everyEpochs(1)], { step: 10, epoch: 2, elapsedSeconds: 5 })).toBe(12);
    expect(next([everyEpochs(1)], { step: 10, maxSteps: 10, epoch: 2 })).toBeNull();
  });
});
