import { dataError } from "@periodic-eval/contracts/options";
import { join } from "node:path";
import {
  measure,
  type EvaluableModel,
  type MeasurementPace,
  type Metric,
  type Row,
} from "@periodic-eval/core";
import { metricKit } from "@periodic-eval/core/evaluations";
import { writeFileAtomic, type FileSystem } from "@periodic-eval/store";
import { entriesOf } from "../harness/entries.ts";
import { dateId } from "../harness/results-file.ts";
import { detailsOf, samplesOf } from "../harness/samples.ts";
import { harnessPartOf } from "../harness/task-part.ts";
import type { OpenTask } from "../suite/open-tasks.ts";
import type { TaskResult } from "./run-files.ts";

export interface TaskRun {
  /** The folder of the samples files; null to write none. */
  readonly samples: string | null;
  readonly timestamp: string;
  readonly seed: string;
  readonly signal?: AbortSignal;
  readonly fs: FileSystem;
  progress(done: number, total: number, pace: MeasurementPace): void;
}

/**
 * Measures one task and writes its samples: one file per group that has no groups below it, as lm-evaluation-harness writes one
 * per task.
 *
 * @throws PeriodicEvalError as `measure`; `store` if the samples cannot be written.
 */
export async function measureTask(open: OpenTask, model: EvaluableModel, run: TaskRun): Promise<TaskResult> {
  const { evaluation, name, task, items } = open;
  const { samples, timestamp, fs, seed, signal, progress } = run;
  const { snapshot, rows } = await measure(evaluation, model, {
    seed,
    progress,
    ...(signal && { signal }),
  });
  if (snapshot.status !== "complete")
    throw dataError(
      `task "${name}"`,
      `an incomplete measurement (${snapshot.reason ?? "without a reason"})`,
      "a row for each document",
      "Check the task's measure(): it returned fewer rows than items.",
    );
  const metrics = evaluation.metrics(metricKit<Row>()) as Readonly<Record<string, Metric<Row>>>;
  const entries = entriesOf(name, metrics, rows);
  const hashes: Record<string, string> = {};
  if (samples !== null) {
    const detailOf = await detailsOf(task, evaluation, model, items);
    for (const entry of entries.filter(({ own }) => own.length > 0)) {
      const { lines, hash } = samplesOf(entry.own, metrics, detailOf);
      const path = join(samples, `samples_${entry.name}_${dateId(timestamp)}.jsonl`);
      await writeFileAtomic(path, lines.map((line) => `${line}\n`).join(""), fs);
      hashes[entry.name] = hash;
    }
  }
  const harness = harnessPartOf({ chosen: open, snapshot, metrics, entries, hashes });
  return { snapshot: snapshot as TaskResult["snapshot"], harness };
}
