export * from "./index.browser.ts";
export {
  loadNativeKernels,
  nativeKernels,
  type KernelStamp,
  type NativeKernelFiles,
} from "./native/compiled-kernels.ts";
export {
  tracingName,
  type NativeKernel,
  type NativeParameters,
  type NativeResults,
} from "./native/native-kernels.ts";
export { useWasmThreads } from "./wasm/wasm-threads.ts";
