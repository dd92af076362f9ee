import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Engine } from "./engine.ts";

/** Returns `npm run <script>` inside this repository: the script installs packages that npm alone cannot install. */
export const commandHere = (script: string, args = ""): Pick<Engine, "command"> =>
  isRepository(script) ? { command: `npm run ${script}${args && ` -- ${args}`}` } : {};

const isRepository = (script: string): boolean =>
  existsSync(fileURLToPath(new URL(`../../../../scripts/${script}.mjs`, import.meta.url)));

const own = createRequire(import.meta.url);

/**
 * Returns the folder in which `periodic-eval native` places the engines that it builds: `node_modules/.cache/periodic-eval` of the
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

/** Whether an engine of native TensorFlow is built or installed. */
export function hasEngine(packageName: string, folder?: string): boolean {
  try {
    return builtEngine(packageName, folder) !== null || own.resolve(packageName) !== "";
  } catch {
    return false;
  }
}
