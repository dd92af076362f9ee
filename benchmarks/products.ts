import * as tf from "@tensorflow/tfjs-core";
import { median } from "./median.ts";

/**
 * Multiplies `rows` rows with each weight [in, out], five times. Returns the median seconds per multiplication of a row's value with a
 * weight's: what the machine reaches in this process in products of these sizes.
 */
export function secondsPerProduct(weights: readonly tf.Tensor2D[], rows: number): number {
  const widths = new Set(weights.map(({ shape: [width] }) => width));
  const inputs = new Map(Array.from(widths, (width) => [width, tf.randomNormal<tf.Rank.R2>([rows, width])]));
  const pass = () => {
    const began = performance.now();
    for (const weight of weights) tf.matMul(inputs.get(weight.shape[0])!, weight).dispose();
    return (performance.now() - began) / 1000;
  };
  pass();
  const seconds = Array.from({ length: 5 }, pass);
  tf.dispose([...inputs.values()]);
  return median(seconds) / rows / weights.reduce((sum, { size }) => sum + size, 0);
}
