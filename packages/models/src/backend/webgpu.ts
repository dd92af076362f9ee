import { commandHere, importOptional, type Engine } from "./engine.ts";

/** What this engine uses of npm `webgpu`, Dawn's bindings for Node. */
interface Dawn {
  create(flags: readonly string[]): Gpu;
  readonly globals: object;
}

/** What it uses of `navigator.gpu`. */
interface Gpu {
  requestAdapter(): Promise<{ readonly info: AdapterInfo } | null>;
}

interface AdapterInfo {
  readonly description: string;
  /** A driver that computes on the processor. */
  readonly isFallbackAdapter: boolean;
}

/** Any GPU with a Vulkan, Metal or Direct3D driver. */
export const webgpu: Engine = {
  name: "webgpu",
  backend: "webgpu",
  packages: ["webgpu", "@tensorflow/tfjs-backend-webgpu"],
  ...commandHere("webgpu"),
  remedy: "Install the GPU's driver (Linux: Vulkan's, with the package libvulkan1)",
  async load(asked) {
    const gpu = await openGpu();
    const adapter = await gpu.requestAdapter();
    if (adapter === null) throw new Error("no GPU that a driver knows");
    const { description, isFallbackAdapter } = adapter.info;
    if (isFallbackAdapter && !asked)
      throw new Error(
        `${description} is no GPU: it is slower than wasm, and started only where it is asked for`,
      );
    offer(gpu);
    await importOptional("@tensorflow/tfjs-backend-webgpu");
  },
};

const navigatorHere = () => globalThis.navigator as { readonly gpu?: Gpu } | undefined;

/** The one in use, because tensors of one cannot be read by another; or a new one. */
async function openGpu(): Promise<Gpu> {
  const inUse = navigatorHere()?.gpu;
  if (inUse !== undefined) return inUse;
  const dawn = (await importOptional("webgpu")) as Dawn;
  Object.assign(globalThis, dawn.globals);
  return dawn.create([]);
}

/** The backend registers itself only where a browser would offer a GPU. */
function offer(gpu: Gpu): void {
  if (navigatorHere()?.gpu === gpu) return;
  const navigator = navigatorHere() ?? {};
  Object.defineProperty(navigator, "gpu", { value: gpu, configurable: true });
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
}
