import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { familyOf } from "../families/registry.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";
import type { RotaryDescription } from "./description.ts";
import { attentionTables, rotaryAngles, swapOfPairs } from "./tables.ts";
import { ConfigReader } from "../families/config/config-reader.ts";

const rotary: RotaryDescription = {
  pairs: "halves",
  frequencies: [0.5],
  long: { beyond: 4, frequencies: [0.25] },
  factor: 2,
};

beforeAll(async () => void (await useBackend({ backend: "cpu" })));

describe("rotary angles", () => {
  it("take any positions, with cosine 1 and sine 0 for dimensions without rotation", () => {
    const { cosines, sines } = rotaryAngles(rotary, 3, [3, 0]);
    // Pair (0, 1) by 3·0.5, times the factor; dimension 2 passes.
    const [cosine, sine] = [Math.fround(2 * Math.cos(1.5)), Math.fround(2 * Math.sin(1.5))];
    expect([...cosines]).toEqual([cosine, cosine, 1, 2, 2, 1]);
    expect([...sines]).toEqual([sine, sine, 0, 0, 0, 0]);
  });

  it("use the long frequencies for all of a sequence beyond the original context", () => {
    const first = (...rest: [number[], number?]) => rotaryAngles(rotary, 2, ...rest).cosines[0];
    const [short, long] = [Math.fround(2 * Math.cos(0.5)), Math.fround(2 * Math.cos(0.25))];
    expect(first([1, 3])).toBe(short);
    expect(first([1, 4])).toBe(long);
    expect(first([1], 5)).toBe(long);
  });

  it("pair adjacent dimensions in the families that rotate these", () => {
    const adjacent = { ...rotary, pairs: "adjacent", frequencies: [0.5, 0.25], long: null } as const;
    const { cosines } = rotaryAngles(adjacent, 5, [3]);
    const [first, second] = [Math.fround(2 * Math.cos(1.5)), Math.fround(2 * Math.cos(0.75))];
    expect([...cosines]).toEqual([first, first, second, second, 1]);
    tf.tidy(() => {
      const x = tf.tensor2d([[1, 2, 3, 4, 5]]);
      expect([...tf.matMul(x, swapOfPairs(5, adjacent)).dataSync()]).toEqual([-2, 1, -4, 3, 0]);
    });
  });

  it("pair the two halves of the rotated dimensions", () => {
    tf.tidy(() => {
      const x = tf.tensor2d([[1, 2, 3, 4, 5]]);
      expect([...tf.matMul(x, swapOfPairs(5, { ...rotary, frequencies: [1, 1] })).dataSync()]).toEqual([
        -3, -4, 1, 2, 0,
      ]);
    });
  });
});

it("shares tables between equal layers, and ignores a window that no sequence exceeds", () => {
  tf.tidy(() => {
    const config = { ...tinyConfigs.gemma2, num_hidden_layers: 4, sliding_window: 3 };
    const description = familyOf(config, "x").describe(new ConfigReader(config, "x"));
    const [first, second, third, fourth] = attentionTables(description, 4);
    expect(third).toEqual(first);
    expect(third!.mask).toBe(first!.mask);
    expect(second!.mask).not.toBe(first!.mask);
    expect(second!.mask).toBe(fourth!.mask);
    expect(second!.rotary!.key.cosines).toBe(first!.rotary!.key.cosines);
    const attended = (mask: tf.Tensor) =>
      (mask as tf.Tensor2D).arraySync().map((row) => row.map((x) => (x === 0 ? 1 : 0)).join(""));
    expect(attended(first!.mask)).toEqual(["1000", "1100", "1110", "0111"]);
    expect(attended(second!.mask)).toEqual(["1000", "1100", "1110", "1111"]);
    const short = attentionTables(description, 3);
    expect(short[0]!.mask).toBe(short[1]!.mask);
  });
});
