import { PeriodicEvalError } from "@periodic-eval/core";
import type { Phase } from "./phase.ts";
import type { StepWork } from "./types.ts";
import type { UpdateResult } from "./update.ts";

/** Where a phase stands that meets a loss or a norm of NaN or Inf. */
export interface NonFinite {
  /** Completed optimizer steps. */
  readonly step: number;
  /** Updates left out one after the other, this one included. */
  readonly skippedInARow: number;
  /** The phase's last one; null where there is none. */
  readonly checkpoint: string | null;
}

/**
 * An update that is not made: a warning where `onNonFinite` is `skip` and it is not one too many in a row.
 *
 * @throws PeriodicEvalError `model` otherwise
 */
export function leaveOut(
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
  if (onNonFinite === "skip" && !isTooMany) return warn(where, `${got}; the update was left out`);
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: onNonFinite === "skip" ? `${got}, after ${maxSkippedInARow} updates left out in a row` : got,
    expected: "finite numbers",
    fix: advice(onNonFinite, at.checkpoint),
  });
}

/** A checkpoint goes on with the same rows and learning rate alone; where there is none, nothing binds. */
function advice(onNonFinite: "error" | "skip", checkpoint: string | null): string {
  const lenience = onNonFinite === "skip" ? "raise maxSkippedInARow" : 'set onNonFinite: "skip"';
  return checkpoint === null
    ? `Mend these rows, lower the phase's learningRate, or ${lenience}, and train again: the phase has no checkpoint yet, and begins anew.`
    : `To go on from ${checkpoint}, ${lenience} and train again with resume: "auto". With mended rows or a lower learningRate ` +
        'it is another training: begin it anew, with resume: "never" or another runDir.';
}
