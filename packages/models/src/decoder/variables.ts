import * as tf from "@tensorflow/tfjs-core";
import { variableName } from "@periodic-eval/core/tfjs";
import type { LiveWeight } from "./causal-lm.ts";
import type { WeightSpec } from "./weights.ts";

/** Values of a weight in its checkpoint, row-major; all, or those of a range. */
export type ReadValues = (range?: readonly [from: number, to: number]) => Promise<Float32Array>;

/** The variable of one weight. `values` are the checkpoint's, row-major in the checkpoint's shape. */
export function createWeight(spec: WeightSpec, values: Float32Array): LiveWeight {
  const { shape, transposed } = spec;
  if (!transposed) return weightOf(spec, tf.tensor(values, [...shape]));
  const [rows, columns] = shape as [number, number];
  if (isNative()) return weightOf(spec, transposedTensor(tf.tensor2d(values, [rows, columns])));
  return weightOf(spec, tf.tensor2d(transposedValues(values, rows, columns), [columns, rows]));
}

/** 16 MB: an array that V8 lets go of soon; it keeps one of a hundred for as long as it likes. */
const pieceSize = 2 ** 22;

/** As `createWeight`, with less of a large weight in memory at once. */
export async function loadWeight(spec: WeightSpec, read: ReadValues): Promise<LiveWeight> {
  // Other engines copy the values as soon as they get them, or hold the array itself.
  if (!isNative() || sizeOf(spec) <= pieceSize) return createWeight(spec, await read());
  const whole = await tensorOfPieces(spec, read);
  return weightOf(spec, spec.transposed ? transposedTensor(whole as tf.Tensor2D) : whole);
}

async function tensorOfPieces(spec: WeightSpec, read: ReadValues): Promise<tf.Tensor> {
  const size = sizeOf(spec);
  const pieces: tf.Tensor1D[] = [];
  try {
    for (let from = 0; from < size; from += pieceSize) {
      const piece = tf.tensor1d(await read([from, Math.min(size, from + pieceSize)]));
      pieces.push(piece);
      takeOver(piece);
    }
    return tf.tidy(() => tf.reshape(tf.concat1d(pieces), [...spec.shape]));
  } finally {
    tf.dispose(pieces);
  }
}

export const sizeOf = ({ shape }: WeightSpec): number => shape.reduce((product, size) => product * size, 1);

/** Takes the tensor over. */
function weightOf({ name, transposed }: WeightSpec, initial: tf.Tensor): LiveWeight {
  let variable: tf.Variable;
  try {
    variable = tf.variable(initial, true, variableName(name));
  } finally {
    initial.dispose();
  }
  takeOver(variable);
  return { name, variable, transposed, read: () => variable };
}

/** In TensorFlow's own memory, so that JavaScript has one array the fewer to let go of. Disposes `x`. */
function transposedTensor(x: tf.Tensor2D): tf.Tensor2D {
  const turned = tf.transpose(x);
  x.dispose();
  return turned;
}

const isNative = () => tf.getBackend() === "tensorflow";

/**
 * TensorFlow takes a tensor over where it is first computed with, and until then JavaScript holds it: of a model just
 * loaded there would be two copies in memory once it runs.
 */
function takeOver(tensor: tf.Tensor): void {
  if (!isNative() || tensor.size === 0) return;
  const { shape } = tensor;
  const first = tf.slice(
    tensor,
    shape.map(() => 0),
    shape.map(() => 1),
  );
  first.dispose();
}

/** The values as a checkpoint holds them, row-major in the checkpoint's shape. */
export async function checkpointValues({ variable, transposed }: LiveWeight): Promise<Float32Array> {
  const values = (await variable.data()) as Float32Array;
  const [rows, columns] = variable.shape as [number, number];
  return transposed ? transposedValues(values, rows, columns) : values;
}

/** [rows, columns] → [columns, rows]; in blocks that stay in the cache. */
function transposedValues(values: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(values.length);
  const block = 32;
  for (let top = 0; top < rows; top += block) {
    for (let left = 0; left < columns; left += block) {
      for (let column = left; column < Math.min(columns, left + block); column++) {
        for (let row = top; row < Math.min(rows, top + block); row++) {
          out[column * rows + row] = values[row * columns + column]!;
        }
      }
    }
  }
  return out;
}
