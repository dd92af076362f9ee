import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);

/**
 * Returns the folder in which `periodic-eval native` places the backends that it builds: `node_modules/.cache/periodic-eval` of the
 * node_modules that holds this package's TensorFlow.js, so that both use the same tensors.
 */
export function nativeBackendFolder(): string {
  // @tensorflow/tfjs-backend-cpu/package.json → node_modules
  const modules = join(require.resolve("@tensorflow/tfjs-backend-cpu/package.json"), "..", "..", "..");
  return join(modules, ".cache", "periodic-eval");
}

/** Returns the module that `periodic-eval native` built for a package; null if it built none. */
export function builtBackend(packageName: string, folder = nativeBackendFolder()): string | null {
  const path = join(folder, basename(packageName), "node_modules", packageName);
  return existsSync(join(path, "package.json")) ? pathToFileURL(require.resolve(path)).href : null;
}

/** Whether a backend of native TensorFlow is built or installed. */
export function hasBackend(packageName: string, folder?: string): boolean {
  try {
    if (builtBackend(packageName, folder) === null) require.resolve(packageName);
    return true;
  } catch {
    return false;
  }
}
