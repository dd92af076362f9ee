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
    [{ alpha: 0 }, { path: ["alpha"], got: "0", expected: "a number in (0, 1]" }],
    [{ alpha: 1.5 }, { path: ["alpha"], got: "1.5", expected: "a number in (0, 1]" }],
    [{ alpha: Number.NaN }, { path: ["alpha"], got: "NaN" }],
    [{ isClip: 0 }, { path: ["isClip"], got: "0", expected: "a number above 0" }],
    [{ klRegWeight: -1 }, { path: ["klRegWeight"], got: "-1", expected: "a number of 0 or more" }],
    [{ klForm: "k2" }, { path: ["klForm"], got: '"k2"', expected: '"k3" or "claas"' }],
    [{ teacher: "ema" }, { path: ["teacher"], got: '"ema"', expected: '"base" or "current"' }],
    [{ teacherTopK: 0.5 }, { path: ["teacherTopK"], got: "0.5", expected: "a positive integer" }],
    [{ hindsight: "{prompt}" }, { path: ["hindsight"], expected: "a string with {prompt} and {feedback}" }],
    [{ stepsPerBatch: 0 }, { path: ["stepsPerBatch"], got: "0" }],
    [{ is_clip: 5 }, { path: ["is_clip"], got: 'the unknown option "is_clip"' }],
    [{ teacherTopk: 5 }, { fix: 'Did you mean "teacherTopK"?' }],
  ])("rejects %j", (given, error) => {
    const code = "config";
    expect(() => parseSDPOConfig(given as object)).toThrow(expect.objectContaining({ code, ...error }));
  });
});
