import type * as tf from "@tensorflow/tfjs-core";
import { kernelsBase64 } from "./binary.ts";

/** The exports of kernels.wat. Tensors are addresses, sizes count values, strides count bytes. */
export interface WasmKernels {
  copyRuns(from: number, fromStride: number, to: number, toStride: number, count: number, size: number): void;
  transpose(x: number, rows: number, columns: number, out: number): void;
  rowMaximum(x: number, rows: number, columns: number, out: number): 0 | 1;
  /** b [inner, columns]. */
  matMul(a: number, b: number, out: number, rows: number, columns: number, inner: number): void;
  /** a [inner], b [inner, columns] → out [columns]. */
  rowMatMul(a: number, b: number, out: number, columns: number, inner: number): void;
  adamW(...addressesSizeAndScalars: readonly number[]): void;
}

/** The part of a backend of `@tensorflow/tfjs-backend-wasm` 4.22 that holds its memory: the second with threads. */
interface WasmBackend {
  readonly wasm: {
    readonly asm?: { readonly memory?: unknown };
    readonly wasmMemory?: unknown;
  };
}

const instances = new WeakMap<object, WasmKernels | null>();

/** Returns the kernels on the memory of a wasm backend; null if its memory is not as expected, or without SIMD. */
export function kernelsOf(backend: object): WasmKernels | null {
  let kernels = instances.get(backend);
  if (kernels === undefined) {
    kernels = instantiate(backend as WasmBackend);
    instances.set(backend, kernels);
  }
  return kernels;
}

function instantiate({ wasm }: WasmBackend): WasmKernels | null {
  const memory = wasm.wasmMemory ?? wasm.asm?.memory;
  if (!(memory instanceof WebAssembly.Memory)) return null;
  const bytes = Uint8Array.from(atob(kernelsBase64), (character) => character.charCodeAt(0));
  // The binary imports shared memory. The flags of the import follow its name and kind; 1: not shared, with a maximum.
  const flags = String.fromCharCode(...bytes).indexOf("memory") + 7;
  if (memory.buffer instanceof ArrayBuffer) bytes[flags] = 1;
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
    return exports as unknown as WasmKernels;
  } catch {
    return null;
  }
}

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

/** Returns null on a backend without the kernels of kernels.wat. */
export function kernelCall({ inputs, attrs, backend }: Parameters<tf.KernelFunc>[0]): KernelCall | null {
  const kernels = kernelsOf(backend);
  const wasm = backend as WasmBackend;
  const at = ({ dataId }: tf.TensorInfo) => wasm.dataIdMap.get(dataId).memoryOffset;
  const named = inputs as KernelCall["inputs"];
  return kernels && { inputs: named, attrs: attrs as KernelCall["attrs"], kernels, backend: wasm, at };
}
