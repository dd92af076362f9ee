import * as tf from "@tensorflow/tfjs-core";
import { fullHeapCode } from "@periodic-eval/contracts/options";
import { loadedKernels } from "./kernels.ts";

/** The part of the module of `@tensorflow/tfjs-backend-wasm` 4.22 that the checks use. */
interface WasmModule {
  _malloc(bytes: number): number;
  _free(address: number): void;
}

interface WasmBackend {
  readonly wasm: WasmModule;
  readSync(...args: unknown[]): unknown;
  disposeData(dataId: object): boolean;
}

const checked = new WeakSet<object>();

/** The line with which a kernel reported that XNNPACK could not allocate, until an error reports it; null if none has. */
let failure: string | null = null;

/** Throws the failure that a kernel has only printed, once. */
function throwFailure(): void {
  const line = failure;
  failure = null;
  if (line !== null) throw fullHeap(line);
}

/**
 * Starts the wasm backend so that a failed allocation throws. Without these checks it goes unnoticed: `_malloc` returns 0, so
 * that a tensor is written to address 0, and a matrix product whose operand XNNPACK cannot copy only prints a warning and
 * leaves its result unset. The failing kernel itself throws, so that the measurement or training step that called it is blamed.
 */
export async function startChecked(): Promise<boolean> {
  const { warn } = console;
  // The module keeps the `console.warn` of the moment it starts.
  console.warn = (...args: unknown[]) => {
    const line = args.map(String).join(" ");
    if (noteFailure(line)) return;
    if (console.warn === warn) console.warn(...args);
    else warn.apply(console, args);
  };
  const listeners = errorListeners();
  let isStarted: boolean;
  try {
    isStarted = await tf.setBackend("wasm");
  } finally {
    console.warn = warn;
    // The module throws uncaught errors and rejections again, so that a rejection which a session has reported ends the process.
    for (const [event, listener] of errorListeners())
      if (!listeners.some((before) => before[1] === listener) && isRethrowing(listener))
        process.off(event, listener);
  }
  if (isStarted) checkBackend(tf.backend() as unknown as WasmBackend);
  return isStarted;
}

/** Whether a listener's source is that of Emscripten: it only throws its argument, except an `ExitStatus`. */
const isRethrowing = (listener: () => void): boolean =>
  /^function\((\w+)\)\{(if\(!\(\1instanceof\w+\)\))?\{?throw\1;?\}+$/.test(
    String(listener).replaceAll(/\s/g, ""),
  );

/** Returns the listeners of this process for errors that nobody handles; none in browsers. */
const errorListeners = () =>
  typeof process === "undefined"
    ? []
    : (["uncaughtException", "unhandledRejection"] as const).flatMap((event) =>
        process.listeners(event as "exit").map((listener) => [event, listener as () => void] as const),
      );

function checkBackend(backend: WasmBackend): void {
  if (checked.has(backend)) return;
  checked.add(backend);
  checkAllocations(backend.wasm);
  checkReads(backend);
  loadedKernels()?.registerWasmKernels(backend);
  for (const kernel of tf.getKernelsForBackend("wasm")) {
    tf.unregisterKernel(kernel.kernelName, "wasm");
    tf.registerKernel(checkedKernel(kernel));
  }
}

/** Returns a wasm kernel that throws, instead of returning an unset result, when it prints that it has no memory. */
export const checkedKernel = (kernel: tf.KernelConfig): tf.KernelConfig => ({
  ...kernel,
  kernelFunc(params) {
    const outputs = kernel.kernelFunc(params);
    // The backend does not know these tensors yet.
    if (failure !== null)
      for (const { dataId } of [outputs].flat()) (params.backend as WasmBackend).disposeData(dataId);
    throwFailure();
    return outputs;
  },
});

/** Makes reading a tensor throw when a kernel reported a failure before, so that no unset result is used. */
function checkReads(backend: Pick<WasmBackend, "readSync">): void {
  const { readSync } = backend;
  backend.readSync = (...args) => {
    throwFailure();
    return readSync.apply(backend, args);
  };
}

/** Remembers a kernel's line about missing memory until an error reports it; returns false for any other line. */
export function noteFailure(line: string): boolean {
  // Status 6 is xnn_status_out_of_memory.
  if (!/XNN status .* is not successful\. Got status 6\b/.test(line)) return false;
  failure ??= line;
  return true;
}

/** Makes the allocations of a wasm module throw when they fail, or when a kernel reported a failure before. */
export function checkAllocations(wasm: WasmModule): void {
  // The first call replaces the property with the function itself.
  wasm._free(wasm._malloc(1));
  const allocate = wasm._malloc;
  wasm._malloc = (bytes) => {
    throwFailure();
    // `_malloc` takes an unsigned 32-bit integer, so that 2³² bytes would be 0.
    const address = bytes < 2 ** 32 ? allocate(bytes) : 0;
    if (address === 0 && bytes > 0) throw fullHeap(`cannot allocate ${bytes} bytes`);
    return address;
  };
}

const fullHeap = (reason: string): Error =>
  Object.assign(new RangeError(`the WebAssembly heap is full: ${reason}`), { code: fullHeapCode });
