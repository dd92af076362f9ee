import type { Engine } from "./engine.ts";

/** WebAssembly with SIMD, one thread in Node. The default: it is installed with this package. */
export const wasm: Engine = {
  name: "wasm",
  backend: "wasm",
  packages: ["@tensorflow/tfjs-backend-wasm"],
  async load() {
    await import("@tensorflow/tfjs-backend-wasm");
  },
};
