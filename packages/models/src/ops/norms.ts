import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";
import { differentiable, isWanted } from "./differentiable.ts";
import { sumOfRows } from "./mat-mul.ts";

/**
 * x [N, D], weight and bias [D] → (x − mean) / √(variance + epsilon) · (weight + offset) + bias [N, D] (Ba et al. 2016). A bias
 * of null adds nothing.
 */
export function layerNorm(
  x: tf.Tensor2D,
  weight: tf.Tensor1D,
  bias: tf.Tensor1D | null,
  { epsilon, offset }: { readonly epsilon: number; readonly offset: 0 | 1 },
): tf.Tensor2D {
  return differentiable(bias === null ? [x, weight] : [x, weight, bias], (save) => {
    const factor = offset === 0 ? weight : tf.add<tf.Tensor1D>(weight, offset);
    if (bias !== null && hasNativeKernels()) {
      save([x, factor]);
      return {
        value: runNative("PeriodicLayerNorm", [x, factor, bias], { epsilon }) as tf.Tensor2D,
        backward: (gradient, saved) =>
          runNative("PeriodicLayerNormGradient", [gradient, ...saved], { epsilon }),
      };
    }
    const centered = tf.sub(x, tf.mean(x, -1, true));
    const inverse = tf.rsqrt(tf.add(tf.mean(tf.square(centered), -1, true), epsilon));
    const normed = tf.mul(centered, inverse);
    const scaled = tf.mul<tf.Tensor2D>(normed, factor);
    const [isWeightWanted, isBiasWanted] = [isWanted(weight), bias !== null && isWanted(bias)];
    save([normed, inverse, factor]);
    return {
      value: bias === null ? scaled : tf.add<tf.Tensor2D>(scaled, bias),
      backward: (gradient, saved) => {
        const [normed, inverse, factor] = saved as [tf.Tensor2D, tf.Tensor2D, tf.Tensor1D];
        const ofNormed = tf.mul(gradient, factor);
        const along = tf.mul(normed, tf.mean(tf.mul(ofNormed, normed), -1, true));
        const ofX = tf.mul(inverse, tf.sub(tf.sub(ofNormed, tf.mean(ofNormed, -1, true)), along));
        const ofWeight = isWeightWanted ? sumOfRows(tf.mul(gradient, normed)) : null;
        return [ofX, ofWeight, isBiasWanted ? sumOfRows(gradient) : null];
      },
    };
  });
}

/**
 * x [N, H·D], weight [D] → x / √(mean(x²) + epsilon) · (weight + offset) [N, H·D], with the mean over each block of D
 * (Zhang and Sennrich 2019).
 */
export function rmsNorm(x: tf.Tensor2D, weight: tf.Tensor1D, epsilon: number, offset: 0 | 1): tf.Tensor2D {
  const width = weight.size;
  const parts: [number, number] = [x.size / width, width];
  return differentiable([x, weight], (save) => {
    if (hasNativeKernels()) {
      save([x, weight]);
      return {
        value: runNative("PeriodicRmsNorm", [x, weight], { epsilon, offset }) as tf.Tensor2D,
        backward: (gradient, saved) =>
          runNative("PeriodicRmsNormGradient", [gradient, ...saved], { epsilon, offset }),
      };
    }
    const rows = tf.reshape(x, parts);
    const inverse = tf.rsqrt(tf.add(tf.mean(tf.square(rows), -1, true), epsilon));
    const normed = tf.mul(rows, inverse);
    const factor = offset === 0 ? weight : tf.add(weight, offset);
    const isTrained = isWanted(weight);
    save([normed, inverse, factor]);
    return {
      value: tf.reshape(tf.mul<tf.Tensor2D>(normed, factor), x.shape),
      backward: (gradient, saved) => {
        const [normed, inverse, factor] = saved as [tf.Tensor2D, tf.Tensor2D, tf.Tensor1D];
        const ofValue = tf.reshape(gradient, parts);
        const ofNormed = tf.mul(ofValue, factor);
        const along = tf.mean(tf.mul(ofNormed, normed), -1, true);
        const ofX = tf.mul(inverse, tf.sub(ofNormed, tf.mul(normed, along)));
        const ofWeight = isTrained ? sumOfRows(tf.mul<tf.Tensor2D>(ofValue, normed)) : null;
        return [tf.reshape(ofX, x.shape), ofWeight];
      },
    };
  });
}
