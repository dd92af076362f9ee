import { join } from "node:path/posix";
import type { AnswerFields, Snapshot } from "@periodic-eval/core";
import type { RunRecord } from "@periodic-eval/contracts";

/** Location of the rows of a measurement. */
export interface RowsPlace {
  /** Path of the snapshot; `samplesPath` gives the path of its rows. */
  readonly snapshotFile: string;
  readonly samples: Snapshot["samples"];
  /** The fields of the rows that the evaluation declared. */
  readonly declared: AnswerFields;
}

/** Returns the location of the rows of a measurement. The run must have the measurement. */
export function rowsPlace(
  run: RunRecord,
  { phase, id, step }: { readonly phase: string; readonly id: string; readonly step: number },
): RowsPlace {
  const { snapshots, series } = run.phases.find(({ name }) => name === phase)!;
  const { samples, answer_fields: declared } = snapshots.find(
    (snapshot) => snapshot.id === id && snapshot.step === step,
  )!;
  const { points } = series.find((one) => one.id === id)!;
  const { file } = points.find((point) => point.step === step)!;
  return { snapshotFile: join(run.runDir, "periodic_eval", file), samples, declared: declared ?? {} };
}
