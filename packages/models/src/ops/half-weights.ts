import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";

/*
 * Half-width weights: the bfloat16 of a weight whose float32 values are all exactly bfloat16, as in most checkpoints. `PeriodicMatMul` gives
 * the same bits with them and reads half as many bytes. See docs/decisions/native-tensorflow.md.
 */

interface Halved {
  /** Identifies the values: assigning to a variable changes it. */
  readonly of: tf.DataId;
  readonly half: tf.TensorInfo | null;
}

/** Not among the tensors and buffers that TensorFlow.js counts, because a measurement may create them. */
const held = new WeakMap<tf.Tensor, Halved>();

/**
 * Returns the half-width copy of a weight [in, out], or [out, in] if it `isTransposed`, for the current values. Returns the weight itself if
 * a value is not exactly bfloat16 or there are no compiled kernels.
 */
export function halfOf(weight: tf.Tensor, isTransposed = false): tf.Tensor {
  if (!hasNativeKernels()) return weight;
  const found = held.get(weight);
  if (found?.of === weight.dataId) return (found.half ?? weight) as tf.Tensor;
  releaseHalf(weight);
  const half = runNative("PeriodicHalve", [weight], { transposed: isTransposed ? 1 : 0 });
  const { dataId, shape, dtype } = half;
  const isExact = shape.length === 2;
  if (isExact) tf.backend().incRef(dataId);
  half.dispose();
  if (isExact) tf.engine().removeDataId(dataId, tf.backend());
  held.set(weight, { of: weight.dataId, half: isExact ? { dataId, shape, dtype } : null });
  return halfOf(weight, isTransposed);
}

/** Frees the half-width copy of a weight. */
export function releaseHalf(weight: tf.Tensor): void {
  const half = held.get(weight)?.half;
  held.delete(weight);
  if (!half) return;
  tf.engine().findBackend("tensorflow").disposeData(half.dataId);
}

/** Whether a weight is a half-width copy. */
export const isHalf = ({ dtype }: tf.Tensor): boolean => dtype === "int32";
