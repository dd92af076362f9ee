import { isOnDevice } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";

/** Whether the backend is native TensorFlow. */
export const isNative = (): boolean => tf.getBackend() === "tensorflow";

/**
 * Computes with a tensor so that native TensorFlow copies it now. JavaScript holds the values until the first operation, so
 * that a loaded model would otherwise be in memory twice when it first runs.
 */
export function moveToEngine(tensor: tf.Tensor): void {
  if (!isNative() || tensor.size === 0) return;
  const { shape } = tensor;
  const first = tf.slice(
    tensor,
    shape.map(() => 0),
    shape.map(() => 1),
  );
  first.dispose();
}

/** Reads integers synchronously; null for a tensor on a device such as webgpu, which can be read only asynchronously. */
export function readIntegersNow(tensor: tf.Tensor): Int32Array | null {
  try {
    return tensor.dataSync<"int32">();
  } catch (error) {
    if (isOnDevice()) return null;
    throw error;
  }
}
