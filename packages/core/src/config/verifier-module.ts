import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PeriodicEvalError } from "../errors.ts";
import type { VerifierModule } from "../grading/verifiers.ts";
import { errorMessage } from "../internal/error-message.ts";
import { hashText } from "../random/hash.ts";
import { readTextFile } from "../snapshots/storage/read-file.ts";

/**
 * The module of that path, relative to a folder.
 *
 * @throws PeriodicEvalError `data` for a module that cannot be read or loaded.
 */
export async function loadVerifierModule(folder: string, path: string): Promise<VerifierModule> {
  const file = resolve(folder, path);
  const text = await readTextFile(file, "verifier.module").catch((error: unknown) => {
    if (!PeriodicEvalError.is(error)) throw error;
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: error.got.replace(`"${file}"`, `"${path}"`),
      expected: "a module at that path of its folder",
      fix: "Correct the path, which is relative to the folder of what names it, or copy the module there.",
      cause: error.cause,
    });
  });
  const hash = hashText(text);
  try {
    // Node keeps what it loaded by its address: text that changed has another.
    const address = `${pathToFileURL(file).href}?${new URLSearchParams({ hash })}`;
    return { hash, exports: (await import(/* @vite-ignore */ address)) as VerifierModule["exports"] };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: `"${path}", which fails to load (${errorMessage(cause)})`,
      expected: "a module of JavaScript (or of TypeScript, where the process runs it)",
      fix: "Mend it; `export` stands before its function.",
      cause,
    });
  }
}
