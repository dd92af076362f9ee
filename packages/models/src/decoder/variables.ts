import * as tf from "@tensorflow/tfjs-core";
import { variableName } from "@periodic-eval/core/tfjs";
import type { LiveWeight } from "./causal-lm.ts";
import type { WeightSpec } from "./weights.ts";

/** The variable of one weight. `values` are the checkpoint's, row-major in the checkpoint's shape. */
export function createWeight(spec: WeightSpec, values: Float32Array): LiveWeight {
  const [rows, columns] = spec.shape as [number, number];
  const initial = spec.transposed
    ? tf.tensor2d(transposedValues(values, rows, columns), [columns, rows])
    : tf.tensor(values, [...spec.shape]);
  const variable = tf.variable(initial, true, variableName(spec.name));
  initial.dispose();
  return { name: spec.name, variable, transposed: spec.transposed, read: () => variable };
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
