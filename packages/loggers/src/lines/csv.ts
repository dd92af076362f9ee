import type { Logger, Snapshot } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/contracts/options";
import { csvLine, tidyColumns, tidySnapshotRows } from "@periodic-eval/store";
import * as z from "zod";
import { pathOption } from "../options.ts";
import { lineFile, type LineKind } from "./line-file.ts";
import { lineLogger } from "./line-logger.ts";

export interface CsvOptions {
  /** The file. Its folder is created. */
  readonly path: string;
}

const schema = z.strictObject({ path: pathOption } satisfies Record<keyof CsvOptions, z.ZodType>);

type Row = ReturnType<typeof tidySnapshotRows>[number];
type Cells = { readonly [Column in keyof Row]: Row[Column] | null };

const runColumns = ["run", "seed", "condition"];
const comparisonColumns = ["delta", "delta_lo", "delta_hi", "n_pairs"];
/** Columns of `periodic-eval compare --csv` without those that are constant in a run or compare measurements. */
const columns = tidyColumns.filter(
  (name) => ![...runColumns, ...comparisonColumns].includes(name),
) as readonly (keyof Row)[];

/**
 * Writes a tidy table (RFC 4180) with one row per value and the columns of `periodic-eval compare --csv` up to `unit`. Training
 * metrics use the same columns with an empty `id`. Unknown is empty; NaN and infinities are `NaN`, `Infinity`, `-Infinity`.
 * A repeated measurement replaces its earlier rows.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or if the file has another format; it is left unchanged. A file of
 *   another run is rejected when a phase begins.
 */
export function csvLogger(options: CsvOptions): Logger {
  parseOptions("csvLogger options", schema, options);
  const { path } = options;
  return lineLogger(path, lineFile(path, kind), {
    name: "csv",
    train: (metrics, { phase, step, runStep, maxSteps }) =>
      Object.entries(metrics).map(([metric, value]) =>
        lineOf({
          ...emptyRow,
          phase,
          step,
          run_step: runStep,
          pct: maxSteps === null || maxSteps === 0 ? null : (100 * step) / maxSteps,
          metric,
          value,
        }),
      ),
    snapshot: (snapshot: Snapshot) => tidySnapshotRows(snapshot).map(lineOf),
    // These columns come first, and names of phases and callbacks need no quotes.
    read(line) {
      const [, phase, step, id = ""] = /^([^,"]+),(\d+),(?:[^,"]*,[^,"]*,([^,"]+),)?/.exec(line) ?? [];
      if (phase === undefined || step === undefined) return null;
      return { phase, step: Number(step), id: id === "" ? null : id };
    },
  });
}

const header = csvLine(columns);

const kind: LineKind = {
  header,
  end: "\r\n",
  description: `a table of csvLogger with the header ${header}`,
  hasThisFormat: (firstLine) => header === firstLine || header.startsWith(firstLine),
  // Ignores commas in quotes. A row with all its commas is complete, or belongs to a snapshot that will be logged again.
  isCutOff: (piece) => piece.replaceAll(/"[^"]*("|$)/g, "").split(",").length < columns.length,
};

const emptyRow = Object.fromEntries(columns.map((column) => [column, null])) as Cells;

/** Formats a row as one line: line breaks in names become spaces. */
const lineOf = (row: Cells): string =>
  csvLine(
    columns.map((column) => {
      const cell = row[column];
      return typeof cell === "string" ? cell.replaceAll(/[\r\n]+/g, " ") : cell;
    }),
  );
