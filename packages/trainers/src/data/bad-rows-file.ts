import { dirname, join, rm } from "@periodic-eval/store/platform";
import { errorMessage } from "@periodic-eval/contracts/options";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import type { BadRow } from "./bad-row.ts";

/** Writes a list of all bad rows of a source, which may be empty. Returns a sentence that names the file. */
export type KeepBadRows = (badRows: readonly BadRow[]) => Promise<string>;

/** The source of a phase's rows: the dataset, or separate validation rows. */
export type RowsOf = "dataset" | "validation";

/**
 * Returns a function that lists bad rows in `<runDir>/bad_rows/<phase>/dataset.jsonl`, or `validation.jsonl`: `where`,
 * `reason` and `got`, one row per line. It replaces the list of an earlier reading. If the list cannot be written, the
 * sentence says so; this neither stops training nor hides another error.
 */
export function badRowsFile(runDir: string, phase: string, of: RowsOf): KeepBadRows {
  const path = join(runDir, "bad_rows", phase, `${of}.jsonl`);
  return async (badRows) => {
    try {
      if (badRows.length === 0) await rm(path, { force: true });
      else {
        await nodeFiles.makeFolder(dirname(path));
        await writeFileAtomic(path, async (file) => {
          for (let from = 0; from < badRows.length; from += 4096) {
            const some = badRows.slice(from, from + 4096);
            const lines = some.map(({ where, reason, got }) => JSON.stringify({ where, reason, got }));
            await file.write(`${lines.join("\n")}\n`);
          }
        });
      }
      return `All bad rows are listed in ${path}.`;
    } catch (error) {
      return `The list of all bad rows cannot be written: ${errorMessage(error)}`;
    }
  };
}
