import { describe, expect, it } from "vitest";
import { parseSFTConfig, type SFTConfig } from "../sft/sft-config.ts";
import { scheduleOf } from "./training-config.ts";

const ratesOf = (config: Partial<SFTConfig>, maxSteps: number) => {
  const rate = scheduleOf("SFT config", parseSFTConfig({ learningRate: 1, ...config }), maxSteps);
  return Array.from({ length: maxSteps }, (_, step) => rate(step));
};

describe("the schedule of a configuration", () => {
  it("takes warm-up and decay in steps, or as shares that are rounded up", () => {
    const expected = [0, 1, 1, 1, 1, 0.5];
    const wsd = { schedule: "wsd", decayType: "linear" } as const;
    expect(ratesOf({ ...wsd, warmupSteps: 1, decaySteps: 2 }, 6)).toEqual(expected);
    // ⌈0.1 · 6⌉ = 1, ⌈0.3 · 6⌉ = 2.
    expect(ratesOf({ ...wsd, warmupRatio: 0.1, decayRatio: 0.3 }, 6)).toEqual(expected);
  });

  it("throws if warm-up and decay overlap", () => {
    expect(() => ratesOf({ schedule: "wsd", warmupSteps: 3, decaySteps: 4 }, 6)).toThrow(
      expect.objectContaining({
        where: "SFT config.schedule",
        got: "3 steps of warm-up and 4 of decay",
        expected: "at most the 6 steps of the phase",
      }),
    );
  });

  it("throws if the warm-up is longer than the phase, with every schedule", () => {
    for (const schedule of ["constant", "linear", "cosine"] as const)
      expect(() => ratesOf({ schedule, warmupSteps: 100 }, 4)).toThrow(
        expect.objectContaining({
          where: "SFT config.warmupSteps",
          got: "100 steps of warm-up",
          expected: "at most the 4 steps of the phase",
          fix: "Shorten warm-up, or train for more steps.",
        }),
      );
    // A warm-up over the whole phase is unusual but valid.
    expect(ratesOf({ schedule: "linear", warmupSteps: 4 }, 4)).toEqual([0, 0.25, 0.5, 0.75]);
  });

  it.each<[Partial<SFTConfig>, object]>([
    [
      { schedule: "wsd" },
      {
        path: ["schedule"],
        got: '"wsd" without decaySteps or decayRatio',
        expected: "the length of the decay",
      },
    ],
    [
      { decaySteps: 3 },
      {
        path: ["decaySteps"],
        got: '3 with schedule "linear"',
        expected: 'schedule: "wsd", which has a decay',
      },
    ],
    [
      { schedule: "wsd", decaySteps: 3, decayRatio: 0.1 },
      { path: ["decaySteps"], got: "decaySteps 3 and decayRatio 0.1" },
    ],
  ])("rejects %j", (config, error) => {
    expect(() => ratesOf(config, 6)).toThrow(expect.objectContaining({ code: "config", ...error }));
  });
});
