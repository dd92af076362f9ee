import { describe, expect, it } from "vitest";
import { parseSDPOConfig } from "./sdpo-config.ts";

describe("parseSDPOConfig", () => {
  it("has the defaults of the method", () => {
    expect(parseSDPOConfig()).toMatchObject({
      learningRate: 3e-5,
      alpha: 0.5,
      isClip: 5,
      maxGradNorm: 1,
      klRegWeight: 0,
      klForm: "k3",
      teacherTopK: 100,
      teacher: "base",
      stepsPerBatch: 4,
    });
  });

  it.each([
    [{ alpha: 0 }, "SDPO config.alpha: got 0, expected a number above 0"],
    [{ alpha: 1.5 }, "SDPO config.alpha: got 1.5, expected a number of 1 or less"],
    [{ alpha: Number.NaN }, "SDPO config.alpha: got NaN"],
    [{ isClip: 0 }, "SDPO config.isClip: got 0, expected a number above 0"],
    [{ klRegWeight: -1 }, "SDPO config.klRegWeight: got -1, expected a number of 0 or more"],
    [{ klForm: "k2" }, 'SDPO config.klForm: got "k2", expected "k3" or "claas"'],
    [{ teacher: "ema" }, 'SDPO config.teacher: got "ema", expected "base" or "current"'],
    [{ teacherTopK: 0.5 }, "SDPO config.teacherTopK: got 0.5, expected a positive integer"],
    [{ hindsight: "{prompt}" }, "expected a string with {prompt} and {feedback}"],
    [{ stepsPerBatch: 0 }, "SDPO config.stepsPerBatch: got 0"],
    [{ is_clip: 5 }, 'the unknown option "is_clip"'],
    [{ teacherTopk: 5 }, 'Did you mean "teacherTopK"?'],
  ])("refuses %j", (given, message) => {
    expect(() => parseSDPOConfig(given as object)).toThrow(message);
  });
});
