import { describe, expect, it } from "vitest";
import { constant, cosine, linear, wsd } from "./learning-rate.ts";

describe("learning rates", () => {
  const options = { peak: 1, maxSteps: 10, warmupSteps: 2 };

  it("rises from 0 to the peak over the warm-up", () => {
    for (const schedule of [constant, linear, cosine]) {
      expect([0, 1, 2].map(schedule(options))).toEqual([0, 0.5, 1]);
    }
  });

  it("stays constant, falls in a straight line, or falls along half a cosine to 0, after the warm-up", () => {
    // Six of the eight steps after warm-up are done at step 8: linear 1/4; cosine (1 + cos(3π/4)) / 2 = 0.14645.
    expect(constant(options)(8)).toBe(1);
    expect(linear(options)(8)).toBe(0.25);
    expect(cosine(options)(8)).toBeCloseTo(0.14645, 5);
    expect([constant, linear, cosine].map((schedule) => schedule(options)(10))).toEqual([1, 0, 0]);
    expect([linear, cosine].map((schedule) => schedule(options)(12))).toEqual([0, 0]);
  });

  it("begins at the peak without warm-up", () => {
    expect([constant, linear, cosine].map((schedule) => schedule({ peak: 3, maxSteps: 4 })(0))).toEqual([
      3, 3, 3,
    ]);
  });

  it("allows a warm-up as long as the phase", () => {
    expect(linear({ peak: 1, maxSteps: 2, warmupSteps: 2 })(2)).toBe(1);
  });
});

describe("warm-up, stable, decay", () => {
  // transformers 5.23.0: get_wsd_schedule(optimizer, num_warmup_steps=2, num_decay_steps=4, num_training_steps=10,
  // decay_type=…), get_last_lr() before each of 12 steps.
  it.each([
    ["linear", [0, 0.5, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0]],
    ["cosine", [0, 0.5, 1, 1, 1, 1, 1, 0.8535533905932737, 0.5, 0.14644660940672627, 0, 0]],
    ["1-sqrt", [0, 0.5, 1, 1, 1, 1, 1, 0.5, 0.2928932188134524, 0.1339745962155614, 0, 0]],
  ] as const)("falls as transformers' %s", (decayType, expected) => {
    const rate = wsd({ peak: 1, maxSteps: 10, warmupSteps: 2, decaySteps: 4, decayType });
    for (const [step, value] of expected.entries()) expect(rate(step), `step ${step}`).toBeCloseTo(value, 14);
  });

  it("stays at the peak to the end without a decay, as in transformers, and is 0 after it", () => {
    const rate = wsd({ peak: 3, maxSteps: 4, decaySteps: 0 });
    expect([0, 3, 4].map(rate)).toEqual([3, 3, 0]);
  });
});
