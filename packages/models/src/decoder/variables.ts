import * as tf from "@tensorflow/tfjs-core";
import { variableName } from "@periodic-eval/tfjs";
import { isNative, moveToEngine } from "../ops/engine-memory.ts";
import type { LiveWeight } from "./causal-lm.ts";
import type { WeightSpec } from "./weights.ts";

/** Reads all values of a weight from its checkpoint, row-major, or a range of them. */
export type ReadValues = (range?: readonly [from: number, to: number]) => Promise<Float32Array>;

/** Creates the variable of a weight. `values` are row-major in the checkpoint's shape. */
export function createWeight(spec: WeightSpec, values: Float32Array): LiveWeight {
  const { shape, transposed } = spec;
  if (!transposed) return weightOf(spec, tf.tensor(values, [...shape]));
  const [rows, columns] = shape as [number, number];
  if (isNative()) return weightOf(spec, transposedTensor(tf.tensor2d(values, [rows, columns])));
  return weightOf(spec, tf.tensor2d(transposedValues(values, rows, columns), [columns, rows]));
}

/** 16 MB. V8 frees arrays of this size soon, and arrays of 100 MB late. */
const pieceSize = 2 ** 22;

/** Creates the variable of a weight like `createWeight`, but reads a large weight in pieces to save memory. */
export async function loadWeight(spec: WeightSpec, read: ReadValues): Promise<LiveWeight> {
  // Other backends copy the values at once or hold the array itself, so that pieces save nothing.
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
      moveToEngine(piece);
    }
    return tf.tidy(() => tf.reshape(tf.concat1d(pieces), [...spec.shape]));
  } finally {
    tf.dispose(pieces);
  }
}

export const sizeOf = ({ shape }: WeightSpec): number => shape.reduce((product, size) => product * size, 1);

/** Makes a variable of a tensor, and disposes the tensor. */
function weightOf({ name, transposed }: WeightSpec, initial: tf.Tensor): LiveWeight {
  let variable: tf.Variable;
  try {
    variable = tf.variable(initial, true, variableName(name));
  } finally {
    initial.dispose();
  }
  moveToEngine(variable);
  return { name, variable, transposed, read: () => variable };
}

/** Transposes in TensorFlow's memory, so that JavaScript holds no second array. Disposes `x`. */
function transposedTensor(x: tf.Tensor2D): tf.Tensor2D {
  const result = tf.transpose(x);
  x.dispose();
  return result;
}

/** Returns the values of a weight, row-major in the checkpoint's shape. */
export async function checkpointValues({ variable, transposed }: LiveWeight): Promise<Float32Array> {
  const values = (await variable.data()) as Float32Array;
  const [rows, columns] = variable.shape as [number, number];
  return transposed ? transposedValues(values, rows, columns) : values;
}

/** Transposes [rows, columns] → [columns, rows] in blocks that stay in the cache. */
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
