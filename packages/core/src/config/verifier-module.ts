import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PeriodicEvalError, hashText } from "@periodic-eval/contracts";
import type { VerifierModule } from "../grading/verifier.ts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { readTextFile, unreadable } from "@periodic-eval/store";

/**
 * Loads the module at a path relative to a folder.
 *
 * @throws PeriodicEvalError `data` for a module that cannot be read or imported.
 */
export async function loadVerifierModule(folder: string, path: string): Promise<VerifierModule> {
  const file = resolve(folder, path);
  const text = await readTextFile(file, "verifier.module").catch((error: unknown) => {
    if (!PeriodicEvalError.is(error)) throw error;
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: unreadable(path, error.cause),
      expected: "a module at that path",
      fix: "Correct the path, which is relative to the folder of the file that names it, or copy the module there.",
      cause: error.cause,
    });
  });
  const hash = hashText(text);
  try {
    // Node caches modules by address, so changed text needs another address.
    const address = `${pathToFileURL(file).href}?${new URLSearchParams({ hash })}`;
    return { hash, exports: (await import(/* @vite-ignore */ address)) as VerifierModule["exports"] };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: `"${path}", which fails to load (${errorMessage(cause)})`,
      expected: "a JavaScript module (or TypeScript, if the process runs it)",
      fix: "Correct the module, and export its function.",
      cause,
    });
  }
}
