import * as tf from "@tensorflow/tfjs-core";
import { addedKernels, smallProductsKernel } from "./added-kernels.ts";
import { kernelsOf } from "./instance.ts";
import { kernelCall } from "./kernel-call.ts";
import { replacedKernels } from "./replaced-kernels.ts";

const backendName = "wasm";

/**
 * Registers the kernels of kernels.wat for the wasm backend, unless its memory is not as expected: then its own kernels and
 * operations compute. Results have the same bits. See docs/decisions/wasm-kernels.md.
 */
export function registerWasmKernels(backend: object): void {
  if (tf.getKernel(smallProductsKernel, backendName) !== undefined || kernelsOf(backend) === null) return;
  for (const [kernelName, run] of Object.entries(replacedKernels)) {
    const kernel = tf.getKernel(kernelName, backendName);
    tf.unregisterKernel(kernelName, backendName);
    tf.registerKernel({
      ...kernel,
      kernelFunc(params) {
        const call = kernelCall(params);
        return (call && run(call)) ?? kernel.kernelFunc(params);
      },
    });
  }
  for (const [kernelName, run] of Object.entries(addedKernels))
    tf.registerKernel({ kernelName, backendName, kernelFunc: (params) => run(kernelCall(params)!) });
}
