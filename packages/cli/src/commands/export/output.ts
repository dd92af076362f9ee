import { PeriodicEvalError } from "@periodic-eval/core";
import { csvLine, tidyColumns, type TidyRow } from "@periodic-eval/store";
import { parquetWriteBuffer } from "hyparquet-writer";

/**
 * Returns the content of a table file in the format of its extension: `.csv` (RFC 4180, null is an empty field) or `.parquet`.
 *
 * @throws PeriodicEvalError `config` for another extension.
 */
export function tableContent(rows: readonly TidyRow[], name: string): string | Uint8Array {
  if (name.endsWith(".csv")) return csvOf(rows);
  if (name.endsWith(".parquet")) return parquetOf(rows);
  throw new PeriodicEvalError({
    code: "config",
    where: "--out",
    got: name,
    expected: "a file name ending in .csv or .parquet",
    fix: "Use one of these extensions.",
  });
}

function csvOf(rows: readonly TidyRow[]): string {
  const lines = rows.map((row) => csvLine(tidyColumns.map((column) => row[column])));
  return [csvLine(tidyColumns), ...lines, ""].join("\r\n");
}

const integers: ReadonlySet<string> = new Set(["step", "run_step", "n", "n_pairs"]);
const numbers: ReadonlySet<string> = new Set(["pct", "value", "lo", "hi", "delta", "delta_lo", "delta_hi"]);

function parquetOf(rows: readonly TidyRow[]): Uint8Array {
  const buffer = parquetWriteBuffer({
    columnData: tidyColumns.map((column) => ({
      name: column,
      data: rows.map((row) => row[column]),
      type: integers.has(column) ? "INT32" : numbers.has(column) ? "DOUBLE" : "STRING",
    })),
  });
  return new Uint8Array(buffer);
}
