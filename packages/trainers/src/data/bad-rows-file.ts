import { createHash, dirname, existsSync, join, rename } from "@periodic-eval/store/platform";
import { errorMessage } from "@periodic-eval/contracts/options";
import { hashFiles, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import type { BadRow } from "./bad-row.ts";

/** Writes a list of all bad rows of a source, which may be empty. Returns a sentence that names the file. */
export type KeepBadRows = (badRows: readonly BadRow[]) => Promise<string>;

/** The source of a phase's rows: the dataset, or separate validation rows. */
export type RowsOf = "dataset" | "validation";

/**
 * Returns a function that lists bad rows in `<runDir>/bad_rows/<phase>/dataset.jsonl`, or `validation.jsonl`: `where`,
 * `reason` and `got`, one row per line. A different list of an earlier reading is renamed to `dataset.1.jsonl` and so on. If
 * the list cannot be written, the sentence says so; this neither stops training nor hides another error.
 */
export function badRowsFile(runDir: string, phase: string, of: RowsOf): KeepBadRows {
  const path = join(runDir, "bad_rows", phase, `${of}.jsonl`);
  return async (badRows) => {
    try {
      const before = existsSync(path) ? await hashFiles([path]) : null;
      if (before !== null && before !== hashOf(badRows)) await rename(path, freeName(path));
      if (badRows.length > 0 && before !== hashOf(badRows)) {
        await nodeFiles.makeFolder(dirname(path));
        await writeFileAtomic(path, async (file) => {
          for (const text of textsOf(badRows)) await file.write(text);
        });
      }
      return `All bad rows are listed in ${path}.`;
    } catch (error) {
      return `The list of all bad rows cannot be written: ${errorMessage(error)}`;
    }
  };
}

function freeName(path: string): string {
  let count = 1;
  const numbered = () => path.replace(/\.jsonl$/, `.${count}.jsonl`);
  while (existsSync(numbered())) count += 1;
  return numbered();
}

/** Yields the lines in chunks of some thousands. */
function* textsOf(badRows: readonly BadRow[]): Generator<string, void> {
  for (let from = 0; from < badRows.length; from += 4096) {
    const some = badRows.slice(from, from + 4096);
    yield some.map(({ where, reason, got }) => `${JSON.stringify({ where, reason, got })}\n`).join("");
  }
}

function hashOf(badRows: readonly BadRow[]): string {
  const hash = createHash("sha256");
  for (const text of textsOf(badRows)) hash.update(text);
  return `sha256:${hash.digest("hex")}`;
}
