import type { Json, Snapshot } from "@periodic-eval/core";
import type { RunRecord } from "@periodic-eval/contracts";
import { jsonField } from "../html/json-field.ts";
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
