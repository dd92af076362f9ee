import type { TrainerCallback, AnyEvaluation, Snapshot } from "@periodic-eval/contracts";
import { workingSeconds } from "@periodic-eval/store";
import { atSteps } from "../../schedule/triggers.ts";
import { createRecords } from "./records.ts";
import { finishGrading, isUngraded } from "./resume.ts";

/** Options of `gradeStored`. */
export interface GradeStoredOptions {
  /** Returns the evaluation that grades a snapshot's rows; null if there is none. */
  readonly evaluationOf: (snapshot: Snapshot) => AnyEvaluation | null;
  /** Whether a graded snapshot is graded again, because some of its rows have no grades. */
  readonly isOpen: (snapshot: Snapshot) => boolean;
  readonly signal: AbortSignal;
  /** Receives warnings. */
  readonly warn: (where: string, message: string) => void;
}

/**
 * Grades the measurements of a run whose answers are kept without grades, in all phases, as a resumed session would. Needs no
 * model.
 *
 * @param run Folder of the run. Locked while this runs.
 * @returns The snapshots that were not graded before, or not in all rows, as they are now.
 * @throws PeriodicEvalError `store` if another process uses the run.
 */
export async function gradeStored(
  run: string,
  { evaluationOf, isOpen, signal, warn }: GradeStoredOptions,
): Promise<readonly Snapshot[]> {
  const reporter = { warn, fail: () => undefined };
  // No snapshot has this phase, so that all belong to phases that are over.
  const common = { run, phase: "", clock: workingSeconds, gradingSignal: signal, reporter };
  const { store } = createRecords({ ...common, seed: "" });
  await store.open?.();
  try {
    const ungraded = (await store.list()).filter((snapshot) => isUngraded(snapshot) || isOpen(snapshot));
    for (const seed of new Set(ungraded.map(({ provenance }) => provenance.seed))) {
      const records = createRecords({ ...common, run: store, seed });
      records.known.load(await store.list(), null);
      const callbacks = ungraded.flatMap((snapshot): TrainerCallback[] => {
        const evaluation = snapshot.provenance.seed === seed ? evaluationOf(snapshot) : null;
        if (evaluation === null) return [];
        // The phase is over: it makes no other comparisons than those of its measurements.
        const steps = records.known.settledOf(snapshot.phase, snapshot.id).map(({ step }) => step);
        const measured = steps.filter((step) => step > 0);
        return [
          { id: snapshot.id, asks: [evaluation], triggers: measured.length === 0 ? [] : [atSteps(measured)] },
        ];
      });
      await finishGrading(records, callbacks, isOpen);
      await records.grading.drain(Infinity);
      await records.writer.writeAll();
    }
    return await Promise.all(ungraded.map(async (one) => (await store.get(one)) ?? one));
  } finally {
    await store.close?.();
  }
}
