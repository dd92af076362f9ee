import * as tf from "@tensorflow/tfjs-core";
import { blockOf } from "@periodic-eval/tfjs";
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

const layerCount = 20;
const deep = () =>
  new CachedTokens(
    places,
    Array.from({ length: layerCount }, () => ({ keys: tf.ones([2, 4, 3]), values: tf.ones([2, 3, 4]) })),
  );

beforeEach(async () => void (await useBackend({ backend: "wasm" })));

const broken = () => {
  const made = cache();
  made.layers[1]!.values.dispose();
  return made;
};

it.each([
  ["append", () => cache().append(cache(5))],
  ["stack", () => cache().stack([cache(5)])],
  ["select", () => broken().select([0])],
])("%s leaves nothing if one of the new layers cannot be made", (_, run) => {
  const before = tf.memory().numTensors;
  expect(run).toThrow();
  expect(tf.memory().numTensors).toBe(before);
});

it.each([
  ["select", (given: CachedTokens) => given.select([1, 0]), 1],
  ["append", (given: CachedTokens) => given.append(deep()), 2],
  ["stack", (given: CachedTokens) => given.stack([deep()]), 2],
] as const)("%s holds one layer twice at most, and uses up what it is made of", async (_, run, caches) => {
  const before = tf.memory();
  let made: CachedTokens | undefined;
  const { peakBytes } = await tf.profile(() => void (made = run(deep())));
  // A layer has 192 bytes; the indices of rows come on top.
  const most = before.numBytes + caches * (layerCount + 2) * 192 + 100;
  expect(peakBytes).toBeLessThan(most);
  expect(tf.memory().numTensors - before.numTensors).toBe(2 * layerCount);
  made!.dispose();
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
