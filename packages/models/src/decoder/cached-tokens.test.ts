import * as tf from "@tensorflow/tfjs-core";
import { blockOf } from "@periodic-eval/core/tfjs";
import { beforeEach, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { CachedTokens } from "./cached-tokens.ts";

const places = blockOf(
  [
    [1, 2, 3],
    [4, 5],
  ],
  0,
);
/** Creates two layers; the width of the second can be incompatible. */
const cache = (width = 4) =>
  new CachedTokens(
    places,
    [4, width].map((size) => ({ keys: tf.ones([2, size, 3]), values: tf.ones([2, 3, size]) })),
  );

beforeEach(async () => void (await useBackend({ backend: "wasm" })));

it("disposes new layers if one of them cannot be made", () => {
  const [first, second] = [cache(), cache(5)];
  const broken = cache();
  broken.layers[1]!.values.dispose();
  const before = tf.memory().numTensors;
  expect(() => first.append(second)).toThrow();
  expect(() => first.stack([second])).toThrow();
  expect(() => broken.select([0])).toThrow();
  expect(tf.memory().numTensors).toBe(before);
  for (const piece of [first, second, broken]) piece.dispose();
});

it("stacks a shorter cache padded below a longer one, and selects it by row again", () => {
  const long = new CachedTokens(blockOf([[1, 2, 3, 4, 5]], 0), [
    { keys: tf.ones([1, 2, 5]), values: tf.ones([1, 5, 2]) },
  ]);
  const short = new CachedTokens(blockOf([[6, 7]], 0), [
    { keys: tf.fill([1, 2, 2], 3), values: tf.fill([1, 2, 2], 4) },
  ]);
  const both = long.stack([short]);
  expect([both.batch, both.length]).toEqual([2, 5]);
  expect([...both.places.segments]).toEqual([0, 0, 0, 0, 0, 0, 0, -1, -1, -1]);
  const row = both.select([1]);
  expect(row.layers[0]!.keys.arraySync()).toEqual([
    [
      [3, 3, 0, 0, 0],
      [3, 3, 0, 0, 0],
    ],
  ]);
  expect(row.layers[0]!.values.arraySync()).toEqual([
    [
      [4, 4],
      [4, 4],
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  ]);
  for (const piece of [long, short, both, row]) piece.dispose();
});
