import { configError } from "@periodic-eval/contracts/options";
import * as tf from "@tensorflow/tfjs-core";
import type { BackendDefinition } from "./definition.ts";
import { cpu, wasm } from "./portable-backends.ts";

/** The part of `navigator.gpu` that this backend uses. */
interface Gpu {
  requestAdapter(): Promise<{
    readonly info?: { readonly description: string; readonly isFallbackAdapter?: boolean };
  } | null>;
}

const packageName = "@tensorflow/tfjs-backend-webgpu";

/** The browser's GPU. The page imports the package, because a bundler must know whether it is installed. */
const webgpu: BackendDefinition = {
  name: "webgpu",
  tfBackend: "webgpu",
  packages: [packageName],
  command: `npm install ${packageName} and import it in the page or worker`,
  remedy: "Use a browser with WebGPU and a GPU driver",
  async load(isRequested) {
    const { gpu } = globalThis.navigator as { readonly gpu?: Gpu };
    if (gpu === undefined) throw new Error("this browser has no WebGPU");
    const adapter = await gpu.requestAdapter();
    if (adapter === null) throw new Error("no driver reports a GPU");
    if (adapter.info?.isFallbackAdapter === true && !isRequested)
      throw new Error(
        "its driver computes on the CPU: it is slower than wasm and starts only when you request webgpu by name",
      );
    if (tf.findBackendFactory("webgpu") === null)
      throw Object.assign(new Error(`${packageName} is not imported`), { code: "MODULE_NOT_FOUND" });
  },
};

function inBrowser(): never {
  throw configError({
    where: "native backends",
    got: "a browser",
    expected: "Node",
    fix: "Use the backends webgpu and wasm.",
  });
}

export { inBrowser as nativeBackendFolder };

/** Every backend, the fastest first. */
export const backends: readonly BackendDefinition[] = [webgpu, wasm, cpu];
