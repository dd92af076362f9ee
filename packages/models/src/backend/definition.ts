/** A backend of TensorFlow.js: which packages it needs, and how it starts. */
export interface BackendDefinition {
  /** The name that users write. */
  readonly name: string;
  /** The name for `tf.setBackend`. */
  readonly tfBackend: string;
  /** The npm packages that it needs. */
  readonly packages: readonly string[];
  /** The command that installs it, where `npm install` of the packages is not enough. */
  readonly command?: string;
  /** The fix for a backend that is installed but does not start, as the first half of a sentence. Default: the command. */
  readonly remedy?: string;
  /**
   * Imports the packages, which registers the backend.
   *
   * @param isRequested Whether the user named this backend. If not, a backend that would be slow here throws.
   * @throws Error if a package is missing or does not load.
   */
  load(isRequested: boolean): Promise<void>;
  /** Makes the backend the current one and returns whether it initialized. Default: `tf.setBackend`. */
  start?(): Promise<boolean>;
}

/** Imports a package that may not be installed; the indirection hides its name from TypeScript and from bundlers. */
export async function importOptional(name: string): Promise<unknown> {
  return import(name);
}

/** Whether an import failed because a package is not installed. */
export function isMissing(error: unknown): boolean {
  const { code = "", message = "" } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  // Vite replaces a missing optional peer by a module that throws an error of its own. The others are Chromium's, Firefox's, Safari's.
  return (
    ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(code) ||
    /^Could not resolve |^Failed to resolve module specifier|was a bare specifier|does not resolve to a valid URL/.test(
      message,
    )
  );
}
