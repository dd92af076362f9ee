import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PeriodicEvalError } from "../errors.ts";
import type { VerifierModule } from "../grading/verifiers.ts";
import { messageOf } from "../message-of.ts";
import { hashText } from "../random/hash.ts";
import { readTextFile } from "../snapshots/whole-file.ts";

/**
 * The module of that path, relative to a folder.
 *
 * @throws PeriodicEvalError `data` for a module that cannot be read or loaded.
 */
export async function loadVerifierModule(folder: string, path: string): Promise<VerifierModule> {
  const file = resolve(folder, path);
  const hash = hashText(await readTextFile(file, "verifier.module"));
  try {
    // Node keeps what it loaded by its address: text that changed has another.
    const address = `${pathToFileURL(file).href}?${new URLSearchParams({ hash })}`;
    return { hash, exports: (await import(/* @vite-ignore */ address)) as VerifierModule["exports"] };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: "verifier.module",
      got: `"${path}", which fails to load (${messageOf(cause)})`,
      expected: "a module of JavaScript (or of TypeScript, where the process runs it)",
      fix: "Mend it; `export` stands before its function.",
      cause,
    });
  }
}
