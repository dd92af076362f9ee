import { describe, expect, it } from "vitest";
import { parseDPOConfig, type DPOConfig } from "./dpo-config.ts";

describe("the configuration of DPO", () => {
  it("has TRL's defaults", () => {
    expect(parseDPOConfig()).toMatchObject({
      beta: 0.1,
      lossType: "sigmoid",
      labelSmoothing: 0,
      learningRate: 1e-6,
      disableDropout: true,
    });
  });

  it.each<[object, string]>([
    [{ beta: 0 }, "DPO config.beta: got 0, expected a number above 0"],
    [{ lossType: "kto" }, 'DPO config.lossType: got "kto", expected "sigmoid" or "hinge" or "ipo"'],
    [{ labelSmoothing: 0.5 }, "DPO config.labelSmoothing: got 0.5, expected a number below 0.5"],
    [
      { labelSmoothing: 0.1, lossType: "ipo" },
      'labelSmoothing: got 0.1 with lossType "ipo", expected 0, or lossType "sigmoid"',
    ],
    [{ loss_type: "ipo" }, 'Did you mean "lossType"?'],
  ])("refuses %j", (given, message) => {
    expect(() => parseDPOConfig(given as Partial<DPOConfig>)).toThrow(message);
  });
});
