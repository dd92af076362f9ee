import { PeriodicEvalError } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { exactConfig } from "../trainer/plan-phase.ts";
import { parseSFTConfig, type SFTConfig } from "./sft-config.ts";

const failure = (config: unknown): string => {
  try {
    parseSFTConfig(config as Partial<SFTConfig>);
  } catch (error) {
    expect(PeriodicEvalError.is(error, "config")).toBe(true);
    return (error as Error).message;
  }
  throw new Error("accepted");
};

describe("parseSFTConfig", () => {
  it("fills in defaults", () => {
    expect(parseSFTConfig({ maxSteps: 5 })).toMatchObject({
      maxSteps: 5,
      epochs: null,
      batchSize: 8,
      maxGradNorm: 1,
      loss: null,
      packing: false,
    });
  });

  it("suggests the nearest option for an unknown one", () => {
    expect(failure({ learning_rate: 1e-3 })).toContain('got the unknown option "learning_rate"');
    expect(failure({ learning_rate: 1e-3 })).toContain('Did you mean "learningRate"?');
    expect(failure({ maxstep: 3 })).toContain('Did you mean "maxSteps"?');
  });

  it("names option, value and expectation", () => {
    expect(failure({ batchSize: 0 })).toContain("SFT config.batchSize: got 0, expected a positive integer");
    expect(failure({ learningRate: Number.NaN })).toContain("SFT config.learningRate: got NaN, expected");
    expect(failure({ batchSize: 1.5 })).toContain(
      "SFT config.batchSize: got 1.5, expected a positive integer",
    );
    expect(failure({ schedule: "wds" })).toMatch(
      /SFT config\.schedule: got "wds", expected .*"constant".*"cosine"/,
    );
    expect(failure({ adamBetas: [0.9, 1] })).toContain("SFT config.adamBetas[1]: got 1, expected");
    expect(failure({ loss: "assistants" })).toContain(
      'SFT config.loss: got "assistants", expected "assistant" or "completion" or "full"',
    );
    expect(failure({ adamBetas: [0.9] })).toContain(
      "SFT config.adamBetas: got [0.9], expected an array of two numbers.",
    );
    expect(failure({ adamBetas: 0.9 })).toContain("adamBetas: got 0.9, expected an array of two numbers.");
    expect(failure({ seed: 1.5 })).toContain("seed: got 1.5, expected an integer or a string.");
    expect(failure({ keepBest: "" })).toContain('keepBest: got "", expected a non-empty string.');
    expect(failure(3)).toContain("SFT config: got 3, expected an object (");
  });

  it("throws for two options that exclude each other", () => {
    expect(failure({ epochs: 1, maxSteps: 4 })).toContain(
      "got epochs 1 and maxSteps 4, expected one of the two",
    );
    expect(failure({ warmupSteps: 1, warmupRatio: 0.1 })).toContain("warmupSteps 1 and warmupRatio 0.1");
  });

  it("lets a resume change the length of training if no learning rate depends on it", () => {
    const exact = (config: Partial<SFTConfig>, maxSteps: number) =>
      exactConfig(parseSFTConfig(config), maxSteps, 3);
    const steady = { schedule: "constant", warmupSteps: 2 } as const;
    expect(exact({ ...steady, maxSteps: 5, saveSteps: 2 }, 5)).toEqual(exact({ ...steady, epochs: 9 }, 18));
    const rising = { schedule: "constant", warmupRatio: 0.1 } as const;
    for (const config of [{ schedule: "linear" }, { schedule: "cosine" }, rising] as const) {
      expect(exact(config, 5)).not.toEqual(exact(config, 18));
      // The same number of steps, given differently, is the same training.
      expect(exact({ ...config, maxSteps: 18 }, 18)).toEqual(exact({ ...config, epochs: 9 }, 18));
    }
    // After 3 steps: a decay over the last 2 of 5 has not begun, a decay over the last 3 has.
    const wsd = { schedule: "wsd", decaySteps: 2 } as const;
    expect(exact(wsd, 5)).toEqual(exact({ ...wsd, decaySteps: 9 }, 18));
    expect(exact(wsd, 5)).not.toEqual(exact({ ...wsd, decaySteps: 3 }, 5));
    expect(exact({ ...wsd, decaySteps: 3 }, 5)).not.toEqual(exact({ ...wsd, decaySteps: 3 }, 18));
    expect(exact({ batchSize: 4 }, 5)).not.toEqual(exact({ batchSize: 8 }, 5));
  });
});
