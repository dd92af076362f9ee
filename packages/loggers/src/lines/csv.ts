import type { Logger, Snapshot } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { csvLine, tidyColumns, tidySnapshotRows } from "@periodic-eval/core/snapshots";
import { checkPath } from "../check-path.ts";
import { lineFile, type LineKind } from "./line-file.ts";
import { lineLogger } from "./line-logger.ts";

export interface CsvOptions {
  /** Of the file; its folder is made. */
  readonly path: string;
}

type Row = ReturnType<typeof tidySnapshotRows>[number];
type Cells = { readonly [Column in keyof Row]: Row[Column] | null };

const ofRuns = ["run", "seed", "condition"];
const ofComparisons = ["delta", "delta_lo", "delta_hi", "n_pairs"];
/** Those of `periodic-eval export`, less what is one for the whole run and what compares looks. */
const columns = tidyColumns.filter(
  (name) => ![...ofRuns, ...ofComparisons].includes(name),
) as readonly (keyof Row)[];

/**
 * A tidy table (RFC 4180), a row a value: the columns of `periodic-eval export` up to `unit`, with the metrics of training in
 * the same ones, their `id` empty. Unknown is empty; NaN and infinities are `NaN`, `Infinity`, `-Infinity`. What is
 * measured again takes the place of the earlier rows.
 *
 * @throws PeriodicEvalError `config` where the path is that of another file, which is left as it is. One that another run
 *   writes is refused where a phase begins.
 */
export function csvLogger(options: CsvOptions): Logger {
  checkKeys("csvLogger", options, ["path"]);
  const { path } = options;
  checkPath("csvLogger path", path);
  return lineLogger(path, lineFile(path, kind), {
    name: "csv",
    train: (metrics, { phase, step, runStep, maxSteps }) =>
      Object.entries(metrics).map(([metric, value]) =>
        lineOf({
          ...none,
          phase,
          step,
          run_step: runStep,
          pct: maxSteps === null || maxSteps === 0 ? null : (100 * step) / maxSteps,
          metric,
          value,
        }),
      ),
    snapshot: (snapshot: Snapshot) => tidySnapshotRows(snapshot).map(lineOf),
    // These come first, and no name of a phase or callback needs quotes.
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
  called: `a table of csvLogger, whose first line is ${header}`,
  isOurs: (firstLine) => header === firstLine || header.startsWith(firstLine),
  // Quoted texts may hold commas. A row that has all its commas is whole, or a look's, which is told again.
  isTorn: (piece) => piece.replaceAll(/"[^"]*("|$)/g, "").split(",").length < columns.length,
};

const none = Object.fromEntries(columns.map((column) => [column, null])) as Cells;

/** Lines end where rows do: a name with a line break in it has a space there. */
const lineOf = (row: Cells): string =>
  csvLine(
    columns.map((column) => {
      const cell = row[column];
      return typeof cell === "string" ? cell.replaceAll(/[\r\n]+/g, " ") : cell;
    }),
  );
