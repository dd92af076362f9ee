import { PeriodicEvalError } from "../errors.ts";
import type { Row } from "../evaluation/types.ts";

/** A line of a samples file. */
export function parseRow(line: string, where: string): Row {
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
