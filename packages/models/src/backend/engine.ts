import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** One way to run TensorFlow.js. */
export interface Engine {
  /** The name that users write. */
  readonly name: string;
  /** The name for `tf.setBackend`. */
  readonly backend: string;
  /** The npm packages that it needs. */
  readonly packages: readonly string[];
  /** The command that installs it, where `npm install` of the packages is not enough. */
  readonly command?: string;
  /** The fix for an engine that is installed but does not start, as the first half of a sentence. Default: the command. */
  readonly remedy?: string;
  /**
   * Imports the packages, which registers the backend.
   *
   * @param isRequested Whether the user named this engine. If not, an engine that would be slow here throws.
   * @throws Error if a package is missing or does not load.
   */
  load(isRequested: boolean): Promise<void>;
  /** Makes the backend the current one and returns whether it initialized. Default: `tf.setBackend`. */
  start?(): Promise<boolean>;
}

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
export function builtEngine(packageName: string): string | null {
  const place = join(nativeEngineFolder(), basename(packageName), "node_modules", packageName);
  return existsSync(join(place, "package.json")) ? pathToFileURL(own.resolve(place)).href : null;
}

/** Whether an engine of native TensorFlow is built or installed. */
export function hasEngine(packageName: string): boolean {
  try {
    return builtEngine(packageName) !== null || own.resolve(packageName) !== "";
  } catch {
    return false;
  }
}

/** Imports a package that may not be installed; the indirection hides its name from TypeScript and from bundlers. */
export async function importOptional(name: string): Promise<unknown> {
  return import(name);
}

/** Whether an import failed because a package is not installed. */
export function isMissing(error: unknown): boolean {
  return ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(
    (error as NodeJS.ErrnoException | null)?.code ?? "",
  );
}
