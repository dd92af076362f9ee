import { PeriodicEvalError } from "../../errors.ts";
import type { Row } from "../../contracts/evaluation.ts";
import type { FileReader } from "./file-system.ts";
import { samplesPath } from "./layout.ts";
import { readLines } from "./read-file.ts";

/**
 * Reads the rows of a snapshot, from the `….samples.jsonl` in its folder.
 *
 * @throws PeriodicEvalError `store` if they cannot be read.
 */
export async function readRows(snapshotFile: string, fs: FileReader): Promise<readonly Row[]> {
  const file = samplesPath(snapshotFile);
  return (await readLines(file, fs)).map((line, at) => parseRow(line, `${file}:${at + 1}`));
}

function parseRow(line: string, where: string): Row {
  try {
    return JSON.parse(line) as Row;
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: "a line that is not JSON",
      expected: "a row",
      fix: "The file was damaged after it was written: supersede its snapshot to measure it again.",
      cause,
    });
  }
}
