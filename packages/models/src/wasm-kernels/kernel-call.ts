import type * as tf from "@tensorflow/tfjs-core";
import { kernelsOf, type WasmKernels } from "./instance.ts";

/** The part of a backend of `@tensorflow/tfjs-backend-wasm` 4.22 that the kernels use. */
interface WasmBackend {
  readonly dataIdMap: { get(dataId: object): { readonly memoryOffset: number } };
  incRef(dataId: object): void;
  disposeData(dataId: object): boolean;
  makeOutput(shape: readonly number[], dtype: tf.DataType): tf.TensorInfo;
}

/** The arguments of a kernel. */
export interface KernelCall {
  readonly inputs: Readonly<Record<string, tf.TensorInfo>>;
  readonly attrs: Readonly<Record<string, unknown>>;
  readonly kernels: WasmKernels;
  readonly backend: WasmBackend;
  /** Returns the address of a tensor. */
  readonly at: (tensor: tf.TensorInfo) => number;
}

export type TensorInfos = tf.TensorInfo | tf.TensorInfo[];

/** The fewest values that a loop over vectors can process. */
export const leastSize = 4;

/** Returns null on a backend without the kernels of kernels.wat. */
export function kernelCall({ inputs, attrs, backend }: Parameters<tf.KernelFunc>[0]): KernelCall | null {
  const kernels = kernelsOf(backend);
  const wasm = backend as WasmBackend;
  const at = ({ dataId }: tf.TensorInfo) => wasm.dataIdMap.get(dataId).memoryOffset;
  const named = inputs as KernelCall["inputs"];
  return kernels && { inputs: named, attrs: attrs as KernelCall["attrs"], kernels, backend: wasm, at };
}
