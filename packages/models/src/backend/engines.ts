import util from "node:util";
import { commandHere, importOptional, type Engine } from "./engine.ts";
import { webgpu } from "./webgpu.ts";

/** Plain JavaScript: slow and simple, for tests. */
const cpu: Engine = {
  name: "cpu",
  backend: "cpu",
  packages: ["@tensorflow/tfjs-backend-cpu"],
  async load() {
    await import("@tensorflow/tfjs-backend-cpu");
  },
};

/** WebAssembly with SIMD, one thread in Node. The default: this package installs it. */
const wasm: Engine = {
  name: "wasm",
  backend: "wasm",
  packages: ["@tensorflow/tfjs-backend-wasm"],
  async load() {
    await import("@tensorflow/tfjs-backend-wasm");
  },
};

/** Native TensorFlow on the CPU. */
const tfjsNode: Engine = { ...native("tfjs-node", "@tensorflow/tfjs-node"), ...commandHere("native") };

/** Native TensorFlow on an NVIDIA GPU. */
const tfjsNodeGpu: Engine = native("tfjs-node-gpu", "@tensorflow/tfjs-node-gpu");

/** Every engine, the fastest first. */
export const engines: readonly Engine[] = [tfjsNodeGpu, tfjsNode, webgpu, wasm, cpu];

/** An engine that runs TensorFlow's C library. */
function native(name: string, packageName: string): Engine {
  return {
    name,
    backend: "tensorflow",
    packages: [packageName],
    async load() {
      // The C++ library logs to standard error on every start.
      process.env["TF_CPP_MIN_LOG_LEVEL"] ??= "3";
      // Node 23 removed this function, and tfjs-node 4.22 still calls it (tensorflow/tfjs#8609).
      const old = util as { isNullOrUndefined?: (value: unknown) => boolean };
      old.isNullOrUndefined ??= (value) => value === null || value === undefined;
      await importOptional(packageName);
    },
  };
}
