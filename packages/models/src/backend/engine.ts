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
  /** Imports the packages, which registers the backend. Throws where one is missing or does not load. */
  load(): Promise<void>;
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
