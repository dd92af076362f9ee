import type { Snapshot } from "@periodic-eval/core";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import type { MeasurementAnswers } from "../page-data/answers-data.ts";

/** Returns a run's measurements with stored rows, without the rows. Leaves out evaluations that store no answers. */
export function answeredMeasurements(run: RunRecord): readonly MeasurementAnswers[] {
  return run.phases.flatMap(({ snapshots }) =>
    snapshots.filter(hasAnswers).map(({ phase, id, evaluation, step, run_step: runStep, samples }) => ({
      phase,
      id,
      evaluation,
      step,
      runStep,
      total: samples!.rows,
      first: 0,
      rows: null,
      problem: null,
    })),
  );
}

const hasAnswers = ({ samples, evaluation }: Snapshot): boolean =>
  samples !== null && samples.rows > 0 && !/^(kl_to_|margin$)/.test(evaluation);
