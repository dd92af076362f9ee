import type { Engine } from "./engine.ts";
import { startChecked } from "./wasm-memory.ts";

/** Plain JavaScript: slow and simple, for tests. */
export const cpu: Engine = {
  name: "cpu",
  backend: "cpu",
  packages: ["@tensorflow/tfjs-backend-cpu"],
  async load() {
    await import("@tensorflow/tfjs-backend-cpu");
  },
};

/** WebAssembly with SIMD and one thread. The default: this package installs it. */
export const wasm: Engine = {
  name: "wasm",
  backend: "wasm",
  packages: ["@tensorflow/tfjs-backend-wasm"],
  async load() {
    await import("@tensorflow/tfjs-backend-wasm");
  },
  start: startChecked,
};
