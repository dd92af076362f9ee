import * as tf from "@tensorflow/tfjs-core";
import { cubicKernel, cubicSigmoidSlopeKernel } from "../wasm-kernels/added-kernels.ts";
import { leastSize } from "../wasm-kernels/kernel-call.ts";

/*
 * The parts of the tanh approximation of GELU around the sigmoid: many passes over large tensors, which the wasm backend computes
 * in one.
 */

/** x → x · (x² · p + q). */
export function cubicOf(x: tf.Tensor2D, p: number, q: number): tf.Tensor2D {
  if (hasKernel(cubicKernel, x)) return tf.engine().runKernel(cubicKernel, { x }, { p, q }) as tf.Tensor2D;
  return tf.mul(x, tf.add(tf.mul(tf.square(x), p), q));
}

/** σ, value [N, F] → σ + value · (1 − σ) · (x² · p + q). */
export function cubicSigmoidSlope(
  inputs: Readonly<Record<"x" | "sigmoid" | "value", tf.Tensor>>,
  p: number,
  q: number,
): tf.Tensor2D {
  const { x, sigmoid, value } = inputs;
  if (hasKernel(cubicSigmoidSlopeKernel, x))
    return tf.engine().runKernel(cubicSigmoidSlopeKernel, { ...inputs }, { p, q }) as tf.Tensor2D;
  const factor = tf.add(tf.mul(tf.square(x), p), q);
  return tf.add(sigmoid, tf.mul(tf.mul(value, tf.sub(1, sigmoid)), factor));
}

const hasKernel = (name: string, { size }: tf.Tensor): boolean =>
  size >= leastSize && tf.getKernel(name, tf.getBackend()) !== undefined;
