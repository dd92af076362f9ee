import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import { blockOf, everySegment, type KeyValues, type TokenBlock } from "@periodic-eval/tfjs";
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { modelFixtures } from "../testing/fixtures.test-data.ts";
import { tinyConfig, unusualFamilies, withTextOptions } from "../testing/tiny-config.test-data.ts";

/** Allows rounding only; one wrong mask or position changes a hundred times as much. */
const tolerance = 5e-5;

const models: Readonly<Record<string, () => Promise<CheckpointLM>>> = {
  "a Llama": async () =>
    createCausalLM({ ...tinyConfig, max_position_embeddings: 64 }, { seed: "a", initStd: 0.3 }),
  ...Object.fromEntries(
    unusualFamilies
      .filter(({ family }) => !modelFixtures.some(({ config }) => config["model_type"] === family))
      .map(({ family, config }) => {
        const long = withTextOptions(config, { max_position_embeddings: 64 });
        return [`a ${family}`, async () => createCausalLM(long, { seed: "a", initStd: 0.3 })];
      }),
  ),
  ...Object.fromEntries(modelFixtures.map(({ name, folder }) => [name, () => loadCausalLM(folder)])),
};
if (modelFixtures.length === 0) reportMissing("a model folder with expected.safetensors");

describe.each(testedBackends.filter((name) => name !== "cpu"))("incremental reading on %s", (backend) => {
  let model: CheckpointLM;
  let warned: MockInstance;
  beforeEach(async () => {
    warned = vi.spyOn(process, "emitWarning");
    await useBackend({ backend });
  });
  afterEach(() => {
    model.dispose();
    // The warning that a graph was not built; every block would then be read without graphs.
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  it.each(Object.keys(models))("of %s equals one pass over the whole", async (name) => {
    model = await models[name]!();
    const random = namedStream(name);
    const draw = (count: number) =>
      Int32Array.from({ length: count }, () => Math.floor(random() * model.vocabSize));
    // A prefix that both rows share, a trunk for each, and branches; all exceed the windows of the fixtures.
    const [prefix, trunks] = [draw(11), [draw(9), draw(6)]];
    const branches = [
      [draw(3), draw(1), draw(4)],
      [draw(5), draw(2)],
    ];
    const twigs = [draw(2), draw(1)];
    const before = tf.memory().numTensors;
    const { extend, logitsOf } = model.incremental;
    const shared = extend(rowsOf([prefix], 0), { rows: [], keep: true });
    const { block, whole } = packed(prefix, trunks, branches, twigs);
    const rows = block.ids.reduce<number[]>(
      (all, _, at) => (block.segments[at]! >= 0 ? [...all, at] : all),
      [],
    );
    const read = extend(block, { past: [shared.keyValues!], rows });
    const logits = logitsOf(read.states);
    expect(largestDifference(logits, expectedOf(model, whole))).toBeLessThan(tolerance);
    tf.dispose([shared.states, read.states, logits]);
    shared.keyValues!.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });

  it.each(Object.keys(models))("of %s works piece by piece", async (name) => {
    model = await models[name]!();
    const random = namedStream(name);
    const draw = (count: number) =>
      Int32Array.from({ length: count }, () => Math.floor(random() * model.vocabSize));
    const sequences = [draw(29), draw(26), draw(24)];
    const before = tf.memory().numTensors;
    const { extend, logitsOf } = model.incremental;
    const read: tf.Tensor2D[] = [];
    const step = (block: TokenBlock, past: KeyValues[], into: KeyValues | null, keep = false) => {
      const rows = Array.from({ length: block.batch }, (_, row) => (row + 1) * block.length - 1);
      const { states, keyValues } = extend(block, { past, into, rows, keep });
      read.push(logitsOf(states));
      states.dispose();
      return keyValues;
    };
    const cut = (from: number, to: number, rows = [0, 1, 2]) =>
      rowsOf(
        rows.map((row) => sequences[row]!.subarray(from, to)),
        from,
      );
    // A growing cache, a cache after it, both appended, and rows dropped and reordered.
    const first = step(cut(0, 12), [], null, true)!;
    step(cut(12, 17), [], first);
    const tail = step(cut(17, 18), [first], null, true)!;
    step(cut(18, 19), [first], tail);
    const joined = first.append(tail);
    const some = joined.select([2, 0]);
    step(cut(19, 24, [2, 0]), [some], null);
    const ends = [
      ...[12, 17, 18, 19].flatMap((end) => sequences.map((ids) => ids.subarray(0, end))),
      ...[2, 0].map((row) => sequences[row]!.subarray(0, 24)),
    ];
    const wanted = tf.tidy(() =>
      tf.concat(
        ends.map((ids) => {
          const input = tf.tensor2d(ids, [1, ids.length], "int32");
          return model.logitsAt(input, tf.tensor1d([ids.length - 1], "int32"));
        }),
      ),
    );
    const logits = tf.concat(read);
    expect(largestDifference(logits, wanted)).toBeLessThan(tolerance);
    tf.dispose([logits, ...read]);
    for (const piece of [first, tail, joined, some]) piece.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });
});

/** Returns the logits of packed tokens, computed for each sequence separately. */
function expectedOf(
  model: CheckpointLM,
  whole: readonly (readonly [ids: Int32Array, from: number])[],
): tf.Tensor2D {
  return tf.tidy(() =>
    tf.concat(
      whole.map(([ids, from]) => {
        const input = tf.tensor2d(ids, [1, ids.length], "int32");
        return model.logitsAt(input, tf.range(from, ids.length, 1, "int32"));
      }),
    ),
  );
}

function packed(
  prefix: Int32Array,
  trunks: readonly Int32Array[],
  branches: readonly (readonly Int32Array[])[],
  twigs: readonly Int32Array[],
) {
  const onBranch = twigs.reduce((sum, twig) => sum + twig.length, 0);
  const lengths = trunks.map((trunk, row) =>
    branches[row]!.reduce((sum, own) => sum + own.length + onBranch, trunk.length),
  );
  const length = Math.max(...lengths);
  const block = {
    batch: trunks.length,
    length,
    ids: new Int32Array(trunks.length * length),
    positions: new Int32Array(trunks.length * length),
    segments: new Int32Array(trunks.length * length).fill(-1),
    lastSegments: new Int32Array(trunks.length * length).fill(-1),
  };
  const whole: (readonly [Int32Array, number])[] = [];
  trunks.forEach((trunk, row) => {
    let at = row * length;
    const put = (ids: Int32Array, start: number, segment: number, lastSegment: number) => {
      ids.forEach((id, index) => {
        block.ids[at] = id;
        block.positions[at] = start + index;
        block.segments[at] = segment;
        block.lastSegments[at++] = lastSegment;
      });
    };
    put(trunk, prefix.length, 0, everySegment);
    whole.push([Int32Array.of(...prefix, ...trunk), prefix.length]);
    let segment = 0;
    branches[row]!.forEach((own) => {
      const branch = ++segment;
      const before = [...prefix, ...trunk];
      put(own, before.length, branch, branch + twigs.length);
      whole.push([Int32Array.of(...before, ...own), before.length]);
      for (const twig of twigs) {
        segment += 1;
        put(twig, before.length + own.length, segment, segment);
        whole.push([Int32Array.of(...before, ...own, ...twig), before.length + own.length]);
      }
    });
  });
  return { block, whole };
}

const rowsOf = (rows: readonly Int32Array[], start: number): TokenBlock =>
  blockOf(
    rows.map((ids) => [...ids]),
    start,
  );

/** Disposes the reference. */
function largestDifference(logits: tf.Tensor2D, wanted: tf.Tensor2D): number {
  expect(logits.shape).toEqual(wanted.shape);
  const far = tf.tidy(() => tf.max(tf.abs(tf.sub(logits, wanted))).dataSync()[0]!);
  wanted.dispose();
  return far;
}
