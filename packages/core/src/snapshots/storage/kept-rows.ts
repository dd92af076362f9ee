import { PeriodicEvalError } from "../../errors.ts";
import type { Row } from "../../contracts/evaluation.ts";
import type { FileReader } from "./files.ts";
import { samplesPath } from "./layout.ts";
import { readLines } from "./atomic-file.ts";

/**
 * The rows that were kept beside a snapshot's file.
 *
 * @throws PeriodicEvalError `store` where they cannot be read.
 */
export async function keptRows(snapshotFile: string, fs: FileReader): Promise<readonly Row[]> {
  const file = samplesPath(snapshotFile);
  return (await readLines(file, fs)).map((line, at) => parseRow(line, `${file}:${at + 1}`));
}

/** A line of a samples file. */
function parseRow(line: string, where: string): Row {
  try {
    return JSON.parse(line) as Row;
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where,
      got: "a line that is no JSON",
      expected: "a row",
      fix: "The file was damaged after it was written: supersede its snapshot to measure it again.",
      cause,
    });
  }
}
