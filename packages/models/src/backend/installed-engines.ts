import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { registerNativeKernels } from "../native-kernels/native-kernels.ts";
import type { Engine } from "./engine.ts";

/** Returns `npm run <script>` inside this repository: the script installs packages that npm alone cannot install. */
export const commandHere = (script: string, args = ""): Pick<Engine, "command"> =>
  isRepository(script) ? { command: `npm run ${script}${args && ` -- ${args}`}` } : {};

const isRepository = (script: string): boolean =>
  existsSync(fileURLToPath(new URL(`../../../../scripts/${script}.mjs`, import.meta.url)));

const own = createRequire(import.meta.url);

/**
 * Returns the folder in which `periodic-eval native` places the backends that it builds: `node_modules/.cache/periodic-eval` of the
 * node_modules that holds this package's TensorFlow.js, so that both use the same tensors.
 */
export function nativeEngineFolder(): string {
  // @tensorflow/tfjs-backend-cpu/package.json → node_modules
  const modules = join(own.resolve("@tensorflow/tfjs-backend-cpu/package.json"), "..", "..", "..");
  return join(modules, ".cache", "periodic-eval");
}

/** Returns the module that `periodic-eval native` built for a package; null if it built none. */
export function builtEngine(packageName: string, folder = nativeEngineFolder()): string | null {
  const place = join(folder, basename(packageName), "node_modules", packageName);
  return existsSync(join(place, "package.json")) ? pathToFileURL(own.resolve(place)).href : null;
}

/** Whether a backend of native TensorFlow is built or installed. */
export function hasEngine(packageName: string, folder?: string): boolean {
  try {
    return builtEngine(packageName, folder) !== null || own.resolve(packageName) !== "";
  } catch {
    return false;
  }
}

/** The kernels for native TensorFlow that `periodic-eval native` compiles. */
export interface NativeKernelFiles {
  /** The folder with `kernels.cc`. */
  readonly source: string;
  /** The name of the compiled file, beside the engine's binding. */
  readonly file: string;
  /** The name of the file that says for which processor it is compiled. */
  readonly stampFile: string;
  /** The instructions of this processor, as Linux names them, separated by spaces. */
  readonly processor: string;
}

export function nativeKernels(): NativeKernelFiles {
  return {
    source: fileURLToPath(new URL("../../src/native-kernels/", import.meta.url)),
    file: "periodic_eval_kernels.node",
    stampFile: "periodic_eval_kernels.json",
    processor: instructionsOf(existsSync(cpuInfo) ? readFileSync(cpuInfo, "utf8") : ""),
  };
}

const cpuInfo = "/proc/cpuinfo";

/** Returns the instructions of the first processor that Linux lists. */
const instructionsOf = (listed: string): string => /^(?:flags|Features)\s*: *(.*)$/m.exec(listed)?.[1] ?? "";

/**
 * Loads the kernels that `periodic-eval native` compiled for a package, unless they were compiled for a processor with other
 * instructions. Without them TensorFlow's own operations compute the same, more slowly.
 */
export function loadNativeKernels(packageName: string, folder = nativeEngineFolder()): void {
  const { file, stampFile, processor } = nativeKernels();
  const place = join(folder, basename(packageName), "node_modules", packageName, "lib", "napi-v8");
  if (!existsSync(join(place, file)) || !existsSync(join(place, stampFile))) return;
  const compiledFor = JSON.parse(readFileSync(join(place, stampFile), "utf8")) as {
    readonly processor: string;
  };
  const here = new Set(processor.split(" "));
  if (!compiledFor.processor.split(" ").every((instruction) => here.has(instruction))) return;
  own(join(place, file));
  registerNativeKernels();
}
