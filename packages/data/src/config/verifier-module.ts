import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PeriodicEvalError, hashText } from "@periodic-eval/contracts";
import { dataError, errorMessage } from "@periodic-eval/contracts/options";
import { readTextFile, unreadable } from "@periodic-eval/store";

/** A module of verifiers. */
export interface VerifierModule {
  /** Hash of the module's text, without its imports. */
  readonly hash: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

/**
 * Loads the module at a path relative to a folder.
 *
 * @throws PeriodicEvalError `data` for a module that cannot be read or imported.
 */
export async function loadVerifierModule(folder: string, path: string): Promise<VerifierModule> {
  const where = "verifier.module";
  const file = resolve(folder, path);
  const text = await readTextFile(file, where).catch((error: unknown) => {
    if (!PeriodicEvalError.is(error)) throw error;
    const fix =
      "Correct the path, which is relative to the folder of the file that names it, or copy the module there.";
    throw dataError(where, unreadable(path, error.cause), "a module at that path", fix, error.cause);
  });
  const hash = hashText(text);
  try {
    // Node caches modules by address, so changed text needs another address.
    const address = `${pathToFileURL(file).href}?${new URLSearchParams({ hash })}`;
    return { hash, exports: (await import(/* @vite-ignore */ address)) as VerifierModule["exports"] };
  } catch (cause) {
    const got = `"${path}", which fails to load (${errorMessage(cause)})`;
    const expected = "a JavaScript module (or TypeScript, if the process runs it)";
    throw dataError(where, got, expected, "Correct the module, and export its function.", cause);
  }
}
