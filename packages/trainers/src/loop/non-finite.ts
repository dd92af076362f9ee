import { PeriodicEvalError } from "@periodic-eval/core";
import type { UpdateResult } from "./learner.ts";
import type { Phase } from "./phase.ts";
import type { StepWork } from "./step-work.ts";

/** The progress of a phase at a loss or gradient norm of NaN or Inf. */
export interface NonFinite {
  /** Completed optimizer steps. */
  readonly step: number;
  /** Consecutive skipped updates, this one included. */
  readonly skippedInARow: number;
  /** The last checkpoint of the phase; null if there is none. */
  readonly checkpoint: string | null;
}

/**
 * Warns that an update is skipped.
 *
 * @throws PeriodicEvalError `model` if `onNonFinite` is not `skip`, or if more than `maxSkippedInARow` updates are skipped.
 */
export function skipOrThrow(
  { name, config, warn }: Phase,
  at: NonFinite,
  work: StepWork,
  result: UpdateResult,
): void {
  const where = `phase ${name}, step ${at.step + 1}`;
  const { onNonFinite, maxSkippedInARow } = config;
  const isTooMany = maxSkippedInARow !== null && at.skippedInARow > maxSkippedInARow;
  const rows = work.where.length > 8 ? `${work.where.slice(0, 8).join(", ")}, …` : work.where.join(", ");
  const got = `a loss of ${result.loss} and a gradient norm of ${result.gradNorm} on the rows ${rows}`;
  if (onNonFinite === "skip" && !isTooMany) return warn(where, `${got}; the update was skipped`);
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: onNonFinite === "skip" ? `${got}, after ${maxSkippedInARow} skipped updates in a row` : got,
    expected: "finite numbers",
    fix: advice(onNonFinite, at.checkpoint),
  });
}

/** A checkpoint resumes only with the same rows and learning rate; without one, both may change. */
function advice(onNonFinite: "error" | "skip", checkpoint: string | null): string {
  const lenience = onNonFinite === "skip" ? "raise maxSkippedInARow" : 'set onNonFinite: "skip"';
  return checkpoint === null
    ? `Correct these rows, lower the phase's learningRate, or ${lenience}, and train again: the phase has no checkpoint yet and starts over.`
    : `To continue from ${checkpoint}, ${lenience} and train again with resume: "auto". Corrected rows or a lower learningRate ` +
        'make it a different training: start over with resume: "never" or another runDir.';
}
