import { join } from "node:path/posix";
import type { RunRecord } from "@periodic-eval/contracts";
import type { Json, Snapshot, AnswerFields } from "@periodic-eval/core";
import { jsonField } from "../html/format.ts";
import type { MeasurementAnswers } from "../page-data/answers-data.ts";

/** Returns a run's measurements with stored rows, without the rows. Leaves out evaluations whose rows are no answers. */
export function answeredMeasurements(run: RunRecord): readonly MeasurementAnswers[] {
  return run.phases.flatMap(({ snapshots }) =>
    snapshots
      .filter(hasAnswers)
      .map(({ phase, id, evaluation, step, run_step: runStep, samples, ...more }) => ({
        phase,
        id,
        evaluation,
        declared: more.answer_fields ?? {},
        example: examplePrompt(more.provenance.evaluation),
        step,
        runStep,
        total: samples!.rows,
        first: 0,
        rows: null,
        problem: null,
      })),
  );
}

const hasAnswers = ({ samples, answer_fields: fields }: Snapshot): boolean =>
  samples !== null && samples.rows > 0 && fields !== null;

/** Returns the first item's prompt, which the provenance of an evaluation may have. */
const examplePrompt = (provenance: Json): string | null => jsonField(provenance, "example_prompt");

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
  const { points } = series.find((callback) => callback.id === id)!;
  const { file } = points.find((point) => point.step === step)!;
  return { snapshotFile: join(run.runDir, "periodic_eval", file), samples, declared: declared ?? {} };
}
