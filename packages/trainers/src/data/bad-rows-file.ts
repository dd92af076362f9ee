import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorMessage } from "@periodic-eval/core/internal";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { hashFile } from "../checkpoint/whole-folder.ts";
import type { BadRow } from "./bad-row.ts";

/** Writes all bad rows of a source where they can be read. Told of none too; returns a sentence that says where they are. */
export type KeepBadRows = (badRows: readonly BadRow[]) => Promise<string>;

/** Of which rows of a phase. */
export type RowsOf = "dataset" | "validation";

/**
 * Lists bad rows in `<runDir>/bad_rows/<phase>/dataset.jsonl`, or `validation.jsonl`: `where`, `reason` and `got`, one row a
 * line. What an earlier reading listed otherwise stays beside it, as `dataset.1.jsonl` and so on. A list that cannot be
 * written is told of in the sentence: it hinders no training, and hides no other error.
 */
export function badRowsFile(runDir: string, phase: string, of: RowsOf): KeepBadRows {
  const path = join(runDir, "bad_rows", phase, `${of}.jsonl`);
  return async (badRows) => {
    try {
      const before = existsSync(path) ? await hashFile(path) : null;
      if (before !== null && before !== hashOf(badRows)) await rename(path, freeName(path));
      if (badRows.length > 0 && before !== hashOf(badRows)) {
        await mkdir(dirname(path), { recursive: true });
        await writeFileAtomic(path, async (file) => {
          for (const text of textsOf(badRows)) await file.write(text);
        });
      }
      return `All bad rows are listed in ${path}.`;
    } catch (error) {
      return `The list of all bad rows could not be written: ${errorMessage(error)}`;
    }
  };
}

function freeName(path: string): string {
  let count = 1;
  const numbered = () => path.replace(/\.jsonl$/, `.${count}.jsonl`);
  while (existsSync(numbered())) count += 1;
  return numbered();
}

/** The lines, some thousands at a time. */
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
