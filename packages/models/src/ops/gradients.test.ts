import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import type { DecoderDescription, LayerDescription } from "../decoder/description.ts";
import { attentionTables } from "../decoder/tables.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import { crossEntropy } from "../testing/mean-loss.test-data.ts";
import { activate, activateGated, type Activation } from "./activation.ts";
import { scaled, sum, dropout, dropoutMask, softCap } from "./arithmetic.ts";
import { attention, type AttentionShape } from "./attention.ts";
import { crossEntropy as rowLosses, headLoss } from "./head-loss.ts";
import { columns, rowsAt } from "./select.ts";
import { gradientsOf } from "./differentiable.ts";
import { layerNorm, rmsNorm } from "./norms.ts";
import { linear, tiedHead, addLora } from "./linear.ts";
import { recomputedByRows } from "./recomputed.ts";

type Matrices = tf.Tensor2D[];

const grouped: AttentionShape = { batch: 2, length: 5, heads: 4, keyValueHeads: 2, headDim: 4 };
const single: AttentionShape = { batch: 3, length: 2, heads: 3, keyValueHeads: 3, headDim: 2 };

const activations: readonly Activation[] = ["silu", "gelu", "geluTanh", "relu", "reluSquared", "quickGelu"];

/** Each operation with the shapes of its inputs. */
const cases: readonly { name: string; shapes: number[][]; run: (inputs: Matrices) => tf.Tensor }[] = [
  {
    name: "linear",
    shapes: [
      [5, 3],
      [3, 4],
    ],
    run: ([x, w]) => linear(x!, w!, null),
  },
  { name: "linear with bias", shapes: [[5, 3], [3, 4], [4]], run: ([x, w, b]) => linear(x!, w!, asRow(b!)) },
  {
    name: "tiedHead",
    shapes: [
      [5, 3],
      [7, 3],
    ],
    run: ([x, embedding]) => tiedHead(x!, embedding!),
  },
  {
    name: "addLora",
    shapes: [
      [5, 4],
      [5, 3],
      [3, 2],
      [2, 4],
    ],
    run: ([output, x, a, b]) => addLora(output!, x!, { a: a!, b: b!, scale: 1.5 }),
  },
  { name: "rmsNorm", shapes: [[5, 6], [6]], run: ([x, w]) => rmsNorm(x!, asRow(w!), 1e-3, 0) },
  {
    name: "rmsNorm of three heads, weights around 0",
    shapes: [[5, 6], [2]],
    run: ([x, w]) => rmsNorm(x!, asRow(w!), 1e-1, 1),
  },
  {
    name: "layerNorm",
    shapes: [[5, 6], [6], [6]],
    run: ([x, w, b]) => layerNorm(x!, asRow(w!), asRow(b!), { epsilon: 1e-3, offset: 0 }),
  },
  {
    name: "layerNorm without bias, weights around 0",
    shapes: [[5, 6], [6]],
    run: ([x, w]) => layerNorm(x!, asRow(w!), null, { epsilon: 1e-3, offset: 1 }),
  },
  ...activations.flatMap((kind) => [
    { name: kind, shapes: [[5, 6]], run: ([x]: Matrices) => activate(kind, x!) },
    {
      name: `gated ${kind}`,
      shapes: [
        [5, 6],
        [5, 6],
      ],
      run: ([gate, up]: Matrices) => activateGated(kind, gate!, up!),
    },
  ]),
  { name: "softCap", shapes: [[5, 6]], run: ([x]) => softCap(x!, 0.7) },
  { name: "scaled", shapes: [[5, 6]], run: ([x]) => scaled(x!, -1.5) },
  { name: "columns", shapes: [[5, 6]], run: ([x]) => columns(x!, 1, 3) },
  { name: "columns of each of two blocks", shapes: [[5, 8]], run: ([x]) => columns(x!, 1, 2, 2) },
  {
    name: "sum",
    shapes: [
      [5, 6],
      [5, 6],
    ],
    run: ([a, b]) => sum(a!, b!),
  },
  // Row 2 twice: its gradients add up.
  { name: "rowsAt", shapes: [[4, 3]], run: ([x]) => rowsAt(x!, tf.tensor1d([2, 0, 2], "int32")) },
  {
    name: "rowsAt, of a scaled table",
    shapes: [[4, 3]],
    run: ([x]) => rowsAt(scaled(x!, 2), tf.tensor1d([1, 3], "int32"), 0),
  },
  {
    name: "dropout",
    shapes: [[5, 6]],
    run: ([x]) => dropout(x!, dropoutMask([5, 6], 0.4, countingStream())),
  },
  {
    name: "crossEntropy",
    shapes: [[5, 6]],
    run: ([x]) => crossEntropy(x!, tf.tensor1d([3, 0, 5, 1, 1], "int32")),
  },
  ...[true, false].flatMap((isTied) =>
    [null, 0.8].flatMap((softCap) =>
      // Five rows of seven logits, at once and two rows at a time.
      [undefined, 2 * 4 * 7].map((bytes) => ({
        name: `headLoss, ${isTied ? "tied" : "its own"}, cap ${softCap}${bytes ? ", in chunks" : ""}`,
        shapes: [[5, 3], isTied ? [7, 3] : [3, 7]],
        run: ([x, weight]: Matrices) =>
          headLoss(x!, { weight: weight!, isTied, softCap }, tf.tensor1d([3, 0, 6, 1, 1], "int32"), bytes),
      })),
    ),
  ),
  {
    name: "cross-entropy of a head with an adapter, two rows at a time",
    shapes: [
      [5, 3],
      [3, 7],
      [3, 2],
      [2, 7],
    ],
    run: ([x, weight, a, b]) =>
      recomputedByRows(
        { x: x!, weights: [weight!, a!, b!], beside: [tf.tensor1d([3, 0, 6, 1, 1], "int32")] },
        2,
        (x, [targets]) =>
          rowLosses(
            addLora(linear(x, weight!, null), x, { a: a!, b: b!, scale: 1.5 }),
            targets as tf.Tensor1D,
          ),
      ),
  },
  { name: "attention, grouped", shapes: attentionShapes(grouped), run: runAttention(grouped) },
  { name: "attention, one query head a group", shapes: attentionShapes(single), run: runAttention(single) },
  {
    name: "attention that rotates in part, in a window, softly capped",
    shapes: attentionShapes(grouped),
    run: runAttention(grouped, {
      window: 2,
      rotary: { pairs: "halves", frequencies: [0.7], long: null, factor: 1.3 },
      softCap: 0.8,
    }),
  },
  {
    name: "attention that rotates adjacent dimensions",
    shapes: attentionShapes(grouped),
    run: runAttention(grouped, {
      rotary: { pairs: "adjacent", frequencies: [0.7, 0.3], long: null, factor: 1 },
    }),
  },
  {
    name: "attention that does not rotate",
    shapes: attentionShapes(grouped),
    run: runAttention(grouped, { rotary: null }),
  },
];

describe.each(testedBackends)("backward passes on %s agree with central differences", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it.each(cases)("$name", ({ shapes, run }) => {
    const before = tf.memory().numTensors;
    tf.tidy(() => {
      const inputs = shapes.map((shape, i) => tensor(values(shape, i), shape));
      const output = run(inputs);
      const weights = tf.tensor(values(output.shape, 99), output.shape);
      const gradients = tf.grads((...inputs) => run(inputs as Matrices))(inputs, weights);
      const weighted = (changed: Matrices) => dot(run(changed).dataSync(), weights.dataSync());
      gradients.forEach((gradient, i) => {
        expect(gradient.shape).toEqual(shapes[i]);
        const found = gradient.dataSync();
        for (let at = 0; at < found.length; at++) {
          // Values below 4 have 24 bits: rounding is below 3e-7 · √terms / 2e-2, curvature below step² = 1e-4.
          const step = 1e-2;
          const moved = (by: number) => weighted(inputs.map((x, j) => (i === j ? nudged(x, at, by) : x)));
          expect(Math.abs(found[at]! - (moved(step) - moved(-step)) / (2 * step))).toBeLessThan(1e-3);
        }
      });
    });
    expect(tf.memory().numTensors).toBe(before);
  });
});

describe.each(testedBackends)("headLoss on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it("returns the same losses and gradients of x for a frozen head, and keeps no logits", () => {
    tf.tidy(() => {
      const x = tf.variable(tensor(values([5, 3], 0), [5, 3]));
      const weight = tensor(values([700, 3], 1), [700, 3]);
      const targets = tf.tensor1d([3, 0, 6, 699, 1], "int32");
      const above = tensor(values([5], 2), [5]);
      const weighed = (run: () => tf.Tensor) =>
        tf.customGrad((losses) => ({
          value: tf.sum(tf.mul(losses as tf.Tensor, above)),
          gradFunc: (gradient: tf.Tensor) => tf.mul(above, gradient),
        }))(run());
      const head = { weight, isTied: true, softCap: null };
      const held: number[] = [];
      const gradientOf = (trained: tf.Tensor[], bytes: number) =>
        gradientsOf(trained, () => {
          const before = tf.memory().numBytes;
          const { value, grads } = tf.variableGrads(() => {
            const loss = weighed(() => headLoss(x, head, targets, bytes));
            held.push(tf.memory().numBytes - before);
            return loss as tf.Scalar;
          }, [x]);
          return [value.dataSync()[0]!, ...grads[x.name]!.dataSync()];
        });
      const whole = gradientOf([x, weight], 2 ** 20);
      for (const bytes of [2 ** 20, 2 * 4 * 700]) {
        gradientOf([x], bytes).forEach((value, i) => expect(value).toBeCloseTo(whole[i]!, 5));
        // 3,500 gradients of logits of 4 bytes each, minus the 15 of x.
        expect(held[0]! - held.at(-1)!).toBeGreaterThan(13_900);
      }
      x.dispose();
    });
  });
});

describe("attention", () => {
  beforeAll(async () => void (await useBackend({ backend: "cpu" })));

  it("attends within a window to the token itself and those just before it", () => {
    tf.tidy(() => {
      const inputs = attentionShapes(grouped).map((shape, i) => tensor(values(shape, i), shape));
      // The third of each sequence's five tokens changes. With a window of two this affects it and the fourth token.
      const width = inputs[2]!.shape[1];
      const changed = [0, 1].reduce((x, sequence) => nudged(x, (5 * sequence + 2) * width, 50), inputs[2]!);
      const [a, b] = [inputs[2]!, changed].map((value) =>
        runAttention(grouped, { window: 2 })([inputs[0]!, inputs[1]!, value]).arraySync(),
      );
      const seeing = a!.map((row, i) => JSON.stringify(row) !== JSON.stringify(b![i]));
      expect(seeing).toEqual([0, 1].flatMap(() => [false, false, true, true, false]));
    });
  });

  it("does not attend to later tokens", () => {
    tf.tidy(() => {
      const inputs = attentionShapes(grouped).map((shape, i) => tensor(values(shape, i), shape));
      const late = inputs.map((x) => nudged(nudged(x, x.size - 1, 50), x.size / 2 - 1, -50));
      const row = grouped.heads * grouped.headDim;
      const [a, b] = [inputs, late].map((x) => runAttention(grouped)(x).dataSync());
      for (const sequence of [0, 1]) {
        const start = sequence * grouped.length * row;
        // All tokens except the last of the sequence.
        expect(a!.slice(start, start + 4 * row)).toEqual(b!.slice(start, start + 4 * row));
        expect(a!.slice(start + 4 * row, start + 5 * row)).not.toEqual(
          b!.slice(start + 4 * row, start + 5 * row),
        );
      }
    });
  });
});

function attentionShapes({ batch, length, heads, keyValueHeads, headDim }: AttentionShape): number[][] {
  const keys = [batch * length, keyValueHeads * headDim];
  return [[batch * length, heads * headDim], keys, keys];
}

function runAttention(shape: AttentionShape, changed: Partial<LayerDescription> & { softCap?: number } = {}) {
  const { headDim, length } = shape;
  const rotary = {
    frequencies: Array.from({ length: headDim / 2 }, (_, i) => 1 / (i + 1)),
    long: null,
    factor: 1,
  };
  const description = {
    attention: { ...shape, softCap: changed.softCap ?? null },
    layers: [{ window: null, rotary, scoreScale: headDim ** -0.5, ...changed }],
  } as unknown as DecoderDescription;
  return ([q, k, v]: Matrices) => attention([q!, k!, v!], attentionTables(description, length)[0]!, shape);
}

/** Returns fixed values in (−1, 1). */
function values(shape: readonly number[], salt: number): Float32Array {
  const size = shape.reduce((product, n) => product * n, 1);
  return Float32Array.from({ length: size }, (_, i) => Math.sin(1 + 12.9898 * i + 7.31 * salt));
}

function nudged(x: tf.Tensor2D, at: number, by: number): tf.Tensor2D {
  const changed = Float32Array.from(x.dataSync());
  changed[at]! += by;
  return tensor(changed, x.shape);
}

/** A tensor of any rank; the operations' types require matrices, which most inputs are. */
function tensor(values: Float32Array, shape: number[]): tf.Tensor2D {
  return tf.tensor<tf.Rank.R2>(values, shape as [number, number]);
}

const asRow = (x: tf.Tensor): tf.Tensor1D => x as tf.Tensor1D;

/** Computes in float64. */
function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i]! * b[i]!;
  return total;
}

function countingStream(): () => number {
  let count = 0;
  return () => (0.618034 * ++count) % 1;
}
