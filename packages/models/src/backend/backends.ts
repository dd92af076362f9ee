import util from "node:util";
import { configError } from "@periodic-eval/contracts/options";
import { importOptional, type BackendDefinition } from "./definition.ts";
import { builtBackend, hasBackend, nativeBackendFolder } from "./installed-backends.ts";
import { loadedKernels } from "./kernels.ts";
import { cpu, wasm as oneThread } from "./portable-backends.ts";

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
const webgpu: BackendDefinition = {
  name: "webgpu",
  tfBackend: "webgpu",
  packages: ["webgpu", "@tensorflow/tfjs-backend-webgpu"],
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

export { nativeBackendFolder };

/** Native TensorFlow on the CPU. */
const tfjsNode = native("tfjs-node", "");

/** Native TensorFlow on an NVIDIA GPU; without a GPU it computes on the CPU. */
const tfjsNodeGpu = native("tfjs-node-gpu", "--gpu");

const wasm: BackendDefinition = {
  ...oneThread,
  async load(isRequested) {
    await oneThread.load(isRequested);
    loadedKernels()?.useWasmThreads();
  },
};

/** Every backend, the fastest first. */
export const backends: readonly BackendDefinition[] = [tfjsNodeGpu, tfjsNode, webgpu, wasm, cpu];

/** The package of native TensorFlow that this process has loaded: a second library in one process may crash it. */
let loaded: string | null = null;

/** A backend that runs TensorFlow's C library. `args` of `periodic-eval native` build it. */
function native(name: string, args: string): BackendDefinition {
  const packageName = `@tensorflow/${name}`;
  const command = `npx periodic-eval native ${args}`.trim();
  return {
    name,
    tfBackend: "tensorflow",
    packages: [packageName],
    // The command builds on Linux only.
    ...(process.platform === "linux" && { command }),
    async load() {
      if (loaded !== null && loaded !== packageName && hasBackend(packageName))
        throw configError({
          where: `useBackend ${name}`,
          got: `a process that has loaded ${loaded}`,
          expected: "one native backend per process",
          fix: "Start another process, or name the loaded backend.",
        });
      // The C++ library logs to standard error on every start.
      process.env["TF_CPP_MIN_LOG_LEVEL"] ??= "3";
      // On a GPU, TensorFlow multiplies float32 matrices with 10 bits of mantissa (TF32) by default.
      process.env["NVIDIA_TF32_OVERRIDE"] ??= "0";
      // Node 23 removed this function, and tfjs-node 4.22 still calls it (tensorflow/tfjs#8609).
      const old = util as { isNullOrUndefined?: (value: unknown) => boolean };
      old.isNullOrUndefined ??= (value) => value === null || value === undefined;
      await importOptional(builtBackend(packageName) ?? packageName);
      // Once per process, so that its warning appears once.
      if (loaded === null) {
        loadedKernels()?.registerFusedCalls();
        loadedKernels()?.loadNativeKernels(packageName, command, nativeBackendFolder());
      }
      loaded = packageName;
    },
  };
}
