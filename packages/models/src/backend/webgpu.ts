import { importOptional, type BackendDefinition } from "./definition.ts";
import { commandHere } from "./installed-backends.ts";

/** The part of npm `webgpu` (Dawn's bindings for Node) that this backend uses. */
interface Dawn {
  create(flags: readonly string[]): Gpu;
  readonly globals: object;
}

/** The part of `navigator.gpu` that this backend uses. */
interface Gpu {
  requestAdapter(): Promise<{ readonly info: AdapterInfo } | null>;
}

interface AdapterInfo {
  readonly description: string;
  /** Whether the driver computes on the CPU. */
  readonly isFallbackAdapter: boolean;
}

/** Any GPU with a Vulkan, Metal or Direct3D driver. */
export const webgpu: BackendDefinition = {
  name: "webgpu",
  tfBackend: "webgpu",
  packages: ["webgpu", "@tensorflow/tfjs-backend-webgpu"],
  ...commandHere("webgpu"),
  remedy: "Install the GPU's driver (Linux: Vulkan's, with the package libvulkan1)",
  async load(isRequested) {
    const gpu = await openGpu();
    const adapter = await gpu.requestAdapter();
    if (adapter === null) throw new Error("no driver reports a GPU");
    const { description, isFallbackAdapter } = adapter.info;
    if (isFallbackAdapter && !isRequested)
      throw new Error(
        `${description} is not a GPU: it is slower than wasm and starts only when you request webgpu by name`,
      );
    setNavigatorGpu(gpu);
    await importOptional("@tensorflow/tfjs-backend-webgpu");
  },
};

const currentNavigator = () => globalThis.navigator as { readonly gpu?: Gpu } | undefined;

/** Returns the instance in use, because one instance cannot read another's tensors; else creates one. */
async function openGpu(): Promise<Gpu> {
  const inUse = currentNavigator()?.gpu;
  if (inUse !== undefined) return inUse;
  const dawn = (await importOptional("webgpu")) as Dawn;
  Object.assign(globalThis, dawn.globals);
  return dawn.create([]);
}

/** Sets `navigator.gpu`, without which the backend does not register itself. */
function setNavigatorGpu(gpu: Gpu): void {
  if (currentNavigator()?.gpu === gpu) return;
  const navigator = currentNavigator() ?? {};
  Object.defineProperty(navigator, "gpu", { value: gpu, configurable: true });
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
}
