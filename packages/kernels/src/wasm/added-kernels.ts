import { adamWKernel } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import type { KernelCall, TensorInfos } from "./instance.ts";

/** a [batch, M, K], b [batch, K, N] → [batch, M, N], with N ≥ 8 and K ≥ 1. */
export const smallProductsKernel = "PeriodicEvalSmallProducts";

/** The kernel that operations of `@periodic-eval/models` call by name. */
export type AddedKernel = typeof smallProductsKernel;

const sizeOf = ({ shape }: tf.TensorInfo): number => tf.util.sizeFromShape(shape);

/** Kernels that only this library calls, and that other backends lack. Inputs and outputs are float32. */
export const addedKernels: Readonly<Record<string, (call: KernelCall) => TensorInfos>> = {
  [adamWKernel]({ inputs, attrs, kernels, backend, at }) {
    const { gradient, weight, mean, meanSq } = inputs as Record<string, tf.TensorInfo>;
    const read = [gradient!, weight!, mean!, meanSq!];
    const written: tf.TensorInfo[] = [];
    try {
      for (let i = 0; i < 3; i++) written.push(backend.makeOutput(weight!.shape, "float32"));
    } catch (error) {
      for (const { dataId } of written) backend.disposeData(dataId);
      throw error;
    }
    const numbers = attrs["numbers"] as readonly number[];
    kernels.adamW(...[...read, ...written].map(at), sizeOf(weight!), ...numbers);
    return written;
  },

  [smallProductsKernel]({ inputs, kernels, backend, at }) {
    const { a, b } = inputs as Record<"a" | "b", tf.TensorInfo>;
    const [batch, inner, columns] = b.shape as [number, number, number];
    const rows = a.shape[1]!;
    const out = backend.makeOutput([batch, rows, columns], "float32");
    let [ofA, ofB, ofOut] = [at(a), at(b), at(out)];
    for (let i = 0; i < batch; i++) {
      if (rows >= 4) kernels.matMul(ofA, ofB, ofOut, rows, columns, inner);
      else
        for (let row = 0; row < rows; row++)
          kernels.rowMatMul(ofA + 4 * row * inner, ofB, ofOut + 4 * row * columns, columns, inner);
      ofA += 4 * rows * inner;
      ofB += 4 * inner * columns;
      ofOut += 4 * rows * columns;
    }
    return out;
  },
};
