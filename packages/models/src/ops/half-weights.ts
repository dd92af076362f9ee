import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";

/*
 * Half-width weights: the bfloat16 of a weight whose float32 values are all exactly bfloat16, as in most checkpoints. `PeriodicMatMul`
 * gives the same bits with them and reads half as many bytes. They replace the float32 values until something needs those. See
 * docs/decisions/native-tensorflow.md.
 */

interface Halved {
  /** Identifies the values: assigning to a variable changes it. */
  readonly floats: tf.DataId;
  readonly half: tf.TensorInfo | null;
}

/** Not among the tensors and buffers that TensorFlow.js counts, because a measurement may create them. */
const copies = new WeakMap<tf.Tensor, Halved>();

/**
 * Returns the half-width copy of a weight [in, out], or [out, in] if it `isTransposed`, for the current values. Returns the weight itself if
 * a value is not exactly bfloat16 or there are no compiled kernels.
 */
export function halfOf(weight: tf.Tensor, isTransposed = false): tf.Tensor {
  if (!hasNativeKernels()) return weight;
  const cached = copies.get(weight);
  if (cached?.floats === weight.dataId) return (cached.half ?? weight) as tf.Tensor;
  releaseHalf(weight);
  const half = runNative("PeriodicHalve", [weight], { transposed: isTransposed ? 1 : 0 });
  const { dataId, shape, dtype } = half;
  const copy = shape.length === 2 ? { dataId, shape, dtype } : null;
  if (copy !== null) tf.backend().incRef(dataId);
  half.dispose();
  if (copy !== null) tf.engine().removeDataId(dataId, tf.backend());
  copies.set(weight, { floats: weight.dataId, half: copy });
  // The transposed one is that of tied embeddings, whose rows are read as float32.
  if (copy !== null && !isTransposed) freeFloats(weight.dataId, dataId);
  return halfOf(weight, isTransposed);
}

/** The part of tfjs-node's backend that keeps tensors. */
interface NativeBackend extends tf.KernelBackend {
  readonly binding: {
    deleteTensor(id: number): void;
    executeOp(
      name: string,
      attributes: readonly never[],
      inputs: readonly number[],
      count: number,
    ): { readonly id: number }[];
  };
  /** Every read and every operation first gets `values`, which is null if TensorFlow has them, under the id. */
  readonly tensorMap: tf.DataStorage<{ id: number; values: null }>;
}

const native = () => tf.engine().findBackend("tensorflow") as NativeBackend;

/** Frees the float32 values of a weight. The first read or operation that needs them restores them from the half-width copy. */
function freeFloats(weight: tf.DataId, half: tf.DataId): void {
  const { tensorMap, binding } = native();
  const stored = tensorMap.get(weight);
  binding.deleteTensor(stored.id);
  stored.id = -1;
  const define = (property: PropertyDescriptor) =>
    Object.defineProperty(stored, "values", { ...property, configurable: true, enumerable: true });
  define({
    get() {
      stored.id = binding.executeOp("PeriodicWiden", [], [tensorMap.get(half).id], 1)[0]!.id;
      define({ value: null, writable: true });
      return null;
    },
  });
}

/** Frees the half-width copy of a weight. */
export function releaseHalf(weight: tf.Tensor): void {
  const cached = copies.get(weight);
  copies.delete(weight);
  if (!cached?.half) return;
  const backend = native();
  // Another tensor may share the float32 values.
  if (backend.tensorMap.has(cached.floats)) void backend.tensorMap.get(cached.floats).values;
  backend.disposeData(cached.half.dataId);
}

/** Whether a weight is a half-width copy. */
export const isHalf = ({ dtype }: tf.Tensor): boolean => dtype === "int32";
