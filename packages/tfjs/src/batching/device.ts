import * as tf from "@tensorflow/tfjs-core";

/**
 * Whether the backend keeps tensors in the memory of a device, such as a GPU: reading one is a download. True for every backend that
 * is not known to use host memory. Native TensorFlow says it itself, because its GPU build computes on the CPU where there is
 * no GPU.
 */
export function isOnDevice(): boolean {
  const backend = tf.getBackend();
  if (backend !== "tensorflow") return backend !== "cpu" && backend !== "wasm";
  return (tf.backend() as { readonly isUsingGpuDevice?: boolean }).isUsingGpuDevice === true;
}

/** Whether the kernels that `periodic-eval native` compiles compute here: they round differently from TensorFlow's operations. */
export const hasCompiledKernels = (): boolean =>
  tf.getKernel("PeriodicMatMul", tf.getBackend()) !== undefined && !isOnDevice();
