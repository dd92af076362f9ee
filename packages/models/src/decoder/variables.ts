import * as tf from "@tensorflow/tfjs-core";
import { variableName } from "@periodic-eval/core/tfjs";
import type { LiveWeight } from "./causal-lm.ts";
import type { WeightSpec } from "./weights.ts";

/** The variable of one weight. `values` are the checkpoint's, row-major in the checkpoint's shape. */
export function createWeight(spec: WeightSpec, values: Float32Array): LiveWeight {
  const initial = spec.transposed
    ? transposedTensor(values, spec.shape as [number, number])
    : tf.tensor(values, [...spec.shape]);
  const variable = tf.variable(initial, true, variableName(spec.name));
  initial.dispose();
  letGo(variable);
  return { name: spec.name, variable, transposed: spec.transposed, read: () => variable };
}

function transposedTensor(values: Float32Array, [rows, columns]: [number, number]): tf.Tensor2D {
  // In TensorFlow's own memory, so that JavaScript has one array the fewer to let go of.
  if (isNative()) return tf.tidy(() => tf.transpose(tf.tensor2d(values, [rows, columns])));
  return tf.tensor2d(transposedValues(values, rows, columns), [columns, rows]);
}

const isNative = () => tf.getBackend() === "tensorflow";

/**
 * TensorFlow takes a tensor over where it is first computed with, and until then JavaScript holds it: of a model just
 * loaded there would be two copies in memory once it runs.
 */
function letGo(variable: tf.Variable): void {
  if (!isNative() || variable.size === 0) return;
  const { shape } = variable;
  const first = tf.slice(
    variable,
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
