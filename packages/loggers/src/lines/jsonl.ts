import type { Logger, RunProgress, Snapshot } from "@periodic-eval/core";
import { isJson, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { jsonNumbers } from "../scalars.ts";
import { pathOption } from "../options.ts";
import { lineFile, type LineKind } from "./line-file.ts";
import { lineLogger } from "./line-logger.ts";

export interface JsonlOptions {
  /** The file. Its folder is created. */
  readonly path: string;
}

const schema = z.strictObject({ path: pathOption } satisfies Record<keyof JsonlOptions, z.ZodType>);

/**
 * Writes one JSON object per line: `{"kind": "train", "phase", "step", "run_step", "epoch", "elapsed_seconds", "metrics": {…}}`
 * and `{"kind": "snapshot", "phase", "step", "run_step", "pct", "id", "status", …, "metrics": {name: {value, n, ci95, …}}}`
 * with the fields of the snapshot file. Skipped and failed measurements have a `reason`. A repeated measurement replaces the
 * earlier one. The loop writes one `train` record per step; a callback that reports metrics and `session.log` each add
 * another, for example for the validation at an early stop. In pandas,
 * `json_normalize(train_records).groupby(["phase", "step"]).first()` merges them into one row. A loss that is NaN or infinite
 * is the string `"NaN"`, `"Infinity"` or `"-Infinity"`.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or if the file has another format; it is left unchanged. A file of
 *   another run is rejected when a phase begins.
 */
export function jsonlLogger(options: JsonlOptions): Logger {
  parseOptions("jsonlLogger options", schema, options);
  const { path } = options;
  return lineLogger(path, lineFile(path, kind), {
    name: "jsonl",
    train: (metrics, at) => [JSON.stringify(trainRecord(metrics, at))],
    snapshot: (snapshot) => [JSON.stringify(snapshotRecord(snapshot))],
    read(line) {
      try {
        const { kind, phase, step, id } = JSON.parse(line) as Readonly<Record<string, unknown>>;
        if (kind !== "train" && kind !== "snapshot") return null;
        if (typeof phase !== "string" || typeof step !== "number") return null;
        return { phase, step, id: typeof id === "string" ? id : null };
      } catch {
        return null;
      }
    },
  });
}

const starts = ['{"kind":"train","phase":"', '{"kind":"snapshot","phase":"'];
/** Whether a line begins like a record. Ignores spaces after colons and commas, which other programs add when they rewrite the file. */
const beginsLikeRecord = (line: string): boolean => {
  const dense = line.replaceAll(/([:,]) /g, "$1");
  return starts.some((start) => dense.startsWith(start) || start.startsWith(dense));
};

const kind: LineKind = {
  description: "a file of jsonlLogger",
  hasThisFormat: beginsLikeRecord,
  isCutOff: (piece) => beginsLikeRecord(piece) && !isJson(piece),
};

const trainRecord = (metrics: Readonly<Record<string, number>>, at: RunProgress) => ({
  kind: "train",
  phase: at.phase,
  step: at.step,
  run_step: at.runStep,
  epoch: at.epoch,
  elapsed_seconds: at.elapsedSeconds,
  metrics: jsonNumbers(metrics),
});

const snapshotRecord = (snapshot: Snapshot) => ({
  kind: "snapshot",
  phase: snapshot.phase,
  step: snapshot.step,
  run_step: snapshot.run_step,
  pct: snapshot.pct,
  id: snapshot.id,
  evaluation: snapshot.evaluation,
  on: snapshot.on,
  status: snapshot.status,
  reason: snapshot.reason,
  created_at: snapshot.created_at,
  metrics: snapshot.metrics,
});
