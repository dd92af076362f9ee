import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One way to run TensorFlow.js. */
export interface Engine {
  /** What users call it. */
  readonly name: string;
  /** What `tf.setBackend` calls it. */
  readonly backend: string;
  /** The npm packages that it needs. */
  readonly packages: readonly string[];
  /** The command that makes it work, where that is not to install these packages. */
  readonly command?: string;
  /** What helps where it is installed and does not start, as the begin of a sentence; else the command. */
  readonly remedy?: string;
  /**
   * Imports the packages, which registers the backend. Throws where one is missing or does not load, or where only
   * somebody who asked for this engine would want what there is of it.
   */
  load(asked: boolean): Promise<void>;
}

/** `npm run <script>` where this is its repository: it installs what npm by itself cannot, or what few need. */
export function commandHere(script: string): Pick<Engine, "command"> {
  const path = fileURLToPath(new URL(`../../../../scripts/${script}.mjs`, import.meta.url));
  return existsSync(path) ? { command: `npm run ${script}` } : {};
}

/** Imports a package that may not be installed, so that types and bundlers do not ask for it. */
export async function importOptional(name: string): Promise<unknown> {
  return import(name);
}

export function isMissing(error: unknown): boolean {
  return ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(
    (error as NodeJS.ErrnoException | null)?.code ?? "",
  );
}
