import type { NativeKernel, NativeParameters, NativeResults, tracingName } from "@periodic-eval/kernels";
import { isOnDevice } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";

const tracing: typeof tracingName = "periodic-eval-trace";

/**
 * Whether the kernels for native TensorFlow can run here: they are loaded, and native TensorFlow computes on the CPU or a function is
 * traced for it. False while a tape records. `differentiable` pauses the tape, so operations ask inside it, and supply the kernel
 * of the gradient.
 */
export function hasNativeKernels(): boolean {
  if (tf.getKernel("PeriodicMatMul", "tensorflow") === undefined || tf.engine().isTapeOn()) return false;
  const backend = tf.getBackend();
  return backend === tracing || (backend === "tensorflow" && !isOnDevice());
}

let fewRows = false;

/**
 * Calls `run`. If `isFew`, its matrix products have few rows and use `PeriodicMatMul`; from some hundred rows on, TensorFlow's
 * product is faster.
 */
export function withFewRows<T>(isFew: boolean, run: () => T): T {
  const before = fewRows;
  fewRows = isFew;
  try {
    return run();
  } finally {
    fewRows = before;
  }
}

/** Whether to multiply with `PeriodicMatMul`. */
export const hasNativeProduct = (): boolean => fewRows && hasNativeKernels();

/** Runs a kernel, or records it in a trace. Its results belong to the surrounding `tf.tidy`. */
export function runNative<Name extends NativeKernel>(
  name: Name,
  inputs: readonly tf.Tensor[],
  parameters: NativeParameters[Name],
): NativeResults<Name> {
  const named = Object.fromEntries(inputs.map((tensor, index) => [`input${index}`, tensor]));
  return tf.engine().runKernel(name, named, { ...parameters }) as NativeResults<Name>;
}
