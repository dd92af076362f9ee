import { importOptional, type Engine } from "./engine.ts";

/** What this engine uses of npm `webgpu`, Dawn's bindings for Node. */
interface Dawn {
  create(flags: readonly string[]): unknown;
  readonly globals: object;
}

/** Any GPU with a Vulkan, Metal or Direct3D driver. */
export const webgpu: Engine = {
  name: "webgpu",
  backend: "webgpu",
  packages: ["webgpu", "@tensorflow/tfjs-backend-webgpu"],
  async load() {
    const dawn = (await importOptional("webgpu")) as Dawn;
    Object.assign(globalThis, dawn.globals);
    // The backend registers itself only where a browser would offer a GPU.
    const navigator = (globalThis.navigator ?? {}) as object;
    Object.defineProperty(navigator, "gpu", { value: dawn.create([]), configurable: true });
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
    await importOptional("@tensorflow/tfjs-backend-webgpu");
  },
};
