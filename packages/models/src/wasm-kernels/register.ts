import { adamWKernel } from "@periodic-eval/core/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { addedKernels } from "./added-kernels.ts";
import { kernelsOf } from "./instance.ts";
import { kernelCall } from "./kernel-call.ts";

const backendName = "wasm";

/**
 * Registers the kernels of kernels.wat for the wasm backend, unless its memory is not as expected: then its own kernels and
 * operations compute. Results have the same bits. See docs/decisions/2026-11-24-wasm-own-kernels.md.
 */
export function registerWasmKernels(backend: object): void {
  if (tf.getKernel(adamWKernel, backendName) !== undefined || kernelsOf(backend) === null) return;
  for (const [kernelName, run] of Object.entries(addedKernels))
    tf.registerKernel({ kernelName, backendName, kernelFunc: (params) => run(kernelCall(params)!) });
}
