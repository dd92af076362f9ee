import type { Logger, RunProgress, Snapshot } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { checkPath } from "../check-path.ts";
import { jsonNumbers } from "../json-number.ts";
import { lineFile, type LineKind } from "./line-file.ts";
import { lineLogger } from "./line-logger.ts";

export interface JsonlOptions {
  /** Of the file; its folder is made. */
  readonly path: string;
}

/**
 * One JSON object a line: `{"kind": "train", "phase", "step", "run_step", "epoch", "elapsed_seconds", "metrics": {…}}`
 * and `{"kind": "snapshot", "phase", "step", "run_step", "pct", "id", "status", …, "metrics": {name: {value, n, ci95, …}}}`
 * as the snapshot's file has them, skipped and failed ones with their `reason`; one that is measured again takes the place of
 * the earlier. A step has a `train` record for each time that metrics of it were told: the loop's, and another for what a
 * callback reports of it or `session.log` adds, such as the validation of a step at which training was stopped. In pandas
 * `json_normalize(train_records).groupby(["phase", "step"]).first()` makes them one row. A loss that is NaN or infinite is the
 * text `"NaN"`, `"Infinity"` or `"-Infinity"`.
 *
 * @throws PeriodicEvalError `config` where the path is that of another file, which is left as it is. One that another run
 *   writes is refused where a phase begins.
 */
export function jsonlLogger(options: JsonlOptions): Logger {
  checkKeys("jsonlLogger", options, ["path"]);
  const { path } = options;
  checkPath("jsonlLogger path", path);
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
/** Spaces behind colons and commas are what other programs add that write the file anew. */
const beginsAsOurs = (text: string): boolean => {
  const dense = text.replaceAll(/([:,]) /g, "$1");
  return starts.some((start) => dense.startsWith(start) || start.startsWith(dense));
};

const kind: LineKind = {
  called: "a file of jsonlLogger's records",
  isOurs: beginsAsOurs,
  isTorn: (piece) => beginsAsOurs(piece) && !isJson(piece),
};

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

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
