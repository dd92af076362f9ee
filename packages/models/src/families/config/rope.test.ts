import { expect, it } from "vitest";
import type { RotaryDescription } from "../../decoder/description.ts";
import { tinyConfig } from "../../testing/tiny-config.test-data.ts";
import { ConfigReader } from "./config-reader.ts";
import { llama } from "../llama.ts";

const [theta, dimensions, oldContext, stretch] = [100, 32, 64, 4];
const pairs = Array.from({ length: dimensions / 2 }, (_, i) => i);
const plain = pairs.map((i) => 1 / theta ** ((2 * i) / dimensions));

function rotaryOf(rope_scaling: object): RotaryDescription {
  const sizes = { head_dim: dimensions, rope_theta: theta, max_position_embeddings: stretch * oldContext };
  const config = { ...tinyConfig, ...sizes, rope_scaling };
  return llama.describe(new ConfigReader(config, "x")).layers[0]!.rotary!;
}

function expectFrequencies({ frequencies }: RotaryDescription, expected: readonly number[]): void {
  expect(frequencies.length).toBe(expected.length);
  frequencies.forEach((frequency, i) => expect(frequency / expected[i]!, `pair ${i}`).toBeCloseTo(1, 12));
}

// Chen et al. 2023: position m becomes m/s.
it("divides every frequency with linear scaling", () => {
  const rotary = rotaryOf({ rope_type: "linear", factor: stretch });
  expectFrequencies(
    rotary,
    plain.map((frequency) => frequency / stretch),
  );
  expect(rotary).toMatchObject({ long: null, factor: 1 });
});

// For a sequence of l tokens the base is θ·(s·max(l, L)/L − (s − 1))^(D/(D − 2)), which is θ for l ≤ L. Longer ones throw.
it("changes nothing within the context with dynamic scaling", () => {
  const rotary = rotaryOf({ rope_type: "dynamic", factor: stretch });
  expectFrequencies(rotary, plain);
  expect(rotary).toMatchObject({ long: null, factor: 1 });
});

// Peng et al. 2023, 3.2: a pair makes r = L·frequency/2π rotations in the original context of L tokens. It is kept if
// r > β and divided by s if r < α. Between, the authors' code blends by the index of the pair, in whole pairs, not by r.
it.each([
  [32, 1, {}],
  [4, 1.5, { beta_fast: 4, beta_slow: 1.5 }],
])(
  "keeps pairs of more than %f rotations and stretches pairs of less than %f with YaRN",
  (beta, alpha, turns) => {
    const rope = {
      rope_type: "yarn",
      factor: stretch,
      original_max_position_embeddings: oldContext,
      ...turns,
    };
    const rotary = rotaryOf(rope);
    const turnsOf = plain.map((frequency) => (oldContext * frequency) / (2 * Math.PI));
    const kept = pairs.filter((i) => turnsOf[i]! > beta).at(-1) ?? 0;
    const stretched = pairs.find((i) => turnsOf[i]! < alpha)!;
    const between = pairs.filter((i) => i > kept && i < stretched);
    expect(between.length).toBeGreaterThan(2);
    const blended = (i: number, share: number) => plain[i]! * (1 - share) + (plain[i]! / stretch) * share;
    expectFrequencies(
      rotary,
      pairs.map((i) => blended(i, Math.min(1, Math.max(0, (i - kept) / (stretched - kept))))),
    );
    // √(1/t) = 0.1·ln s + 1, on both queries and keys.
    expect(rotary.factor).toBeCloseTo(0.1 * Math.log(stretch) + 1, 12);
  },
);

it("takes the attention factor of YaRN from attention_factor, or from the ratio of both mscales", () => {
  const yarn = { rope_type: "yarn", factor: stretch };
  expect(rotaryOf({ ...yarn, attention_factor: 1.5 }).factor).toBe(1.5);
  // (0.1·0.5·ln 4 + 1)/(0.1·2·ln 4 + 1)
  expect(rotaryOf({ ...yarn, mscale: 0.5, mscale_all_dim: 2 }).factor).toBeCloseTo(1.0693147 / 1.2772589, 6);
});
