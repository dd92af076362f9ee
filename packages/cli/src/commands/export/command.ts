import { readLabelledRuns } from "../../run/read-runs.ts";
import { PeriodicEvalError } from "@periodic-eval/core";
import { csvLine, tidyColumns, type TidyRow, tidyRows, writeFileAtomic } from "@periodic-eval/store";
import type { Command } from "commander";
import { parquetWriteBuffer } from "hyparquet-writer";
import type { Terminal } from "../../terminal/terminal.ts";

/** `export`: writes every metric of every measurement as one tidy table. */
export function addExport(program: Command, terminal: Terminal): void {
  program
    .command("export")
    .description("write all metrics of runs as one tidy table, CSV or Parquet")
    .argument("<runs...>", "folders of runs, each as folder or condition=folder")
    .option("--out <file>", "a file ending in .csv or .parquet (default: CSV to stdout)")
    .action(async (names: readonly string[], { out }: { readonly out?: string }) => {
      const runs = await readLabelledRuns(names, terminal);
      const rows = runs.flatMap(({ run, condition }) => tidyRows(run, condition));
      const content = tableContent(rows, out ?? ".csv");
      if (out === undefined) return terminal.out(String(content).trimEnd());
      await writeFileAtomic(
        out,
        typeof content === "string" ? content : async (file) => await file.write(content),
      );
      terminal.out(`${out}: ${rows.length} rows`);
    });
}

/**
 * Returns the content of a table file in the format of its extension: `.csv` (RFC 4180, null is an empty field) or `.parquet`.
 *
 * @throws PeriodicEvalError `config` for another extension.
 */
function tableContent(rows: readonly TidyRow[], name: string): string | Uint8Array {
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
