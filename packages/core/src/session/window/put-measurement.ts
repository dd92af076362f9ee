import type { Guard, MeasurementWarning, SessionOptions, Snapshot } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { Governor } from "../budget/governor.ts";
import type { PhaseClock } from "../budget/phase-clock.ts";
import { warningOfAll, type Measurement, type Requested } from "../records/new-snapshot.ts";
import { callbackName } from "../records/reporter.ts";
import { abortReason } from "../records/interrupted.ts";
import type { SessionRecords } from "../records/records.ts";
import type { Disturbances, WindowReporter } from "./disturbances.ts";
import type { Preflight } from "./preflight.ts";
import type { Timeouts } from "./timeouts.ts";

export interface WindowParts {
  readonly options: Pick<SessionOptions, "budget" | "onBrokenReceipt" | "saveAtFiring">;
  readonly guards: readonly Guard[];
  readonly signal: AbortSignal;
  readonly clock: PhaseClock;
  readonly governor: Governor;
  readonly records: SessionRecords;
  readonly preflight: Preflight;
  readonly disturbances: Disturbances;
  readonly timeouts: Timeouts;
  readonly reporter: WindowReporter;
}

/** Returns the warnings that concern every metric: those of the probes, and of weights that training has not changed. */
export function modelWarnings(
  { preflight, records, reporter }: WindowParts,
  { phase, on, at: { step, maxSteps } }: Measurement,
  weights: string | null,
): readonly MeasurementWarning[] {
  const before = records.known.settled().filter((snapshot) => snapshot.phase === phase);
  const mayBeEqual = records.training.isWarmingUp && step !== maxSteps;
  const unchanged = mayBeEqual ? null : unchangedWeights({ weights, step, on }, before);
  if (
    unchanged !== null &&
    !before.some(({ warnings }) => warnings.some(({ kind }) => kind === unchanged.kind))
  )
    reporter.warn(`phase "${phase}"`, unchanged.message);
  return [...preflight.faultsOf(on), ...(unchanged === null ? [] : [unchanged])];
}

/**
 * Puts a failed or skipped snapshot into the store. What this training already measured at the step stands: a skipped repetition
 * changes nothing, a failed one is added to its reason.
 */
export async function putWithoutRows(
  { records: { known, writer }, reporter, disturbances, signal }: WindowParts,
  { callback, id }: Requested,
  { reason, ...taken }: Snapshot,
  failure: { readonly error: unknown } | null,
): Promise<void> {
  const earlier = known.getSettled(taken);
  if (failure === null && earlier !== null) return;
  const snapshot = { ...taken, reason, receipt: [...taken.receipt, ...disturbances.take()] };
  const aborted = abortReason(signal);
  const reported = failure === null || aborted !== null ? null : { callback, ...failure };
  if (reported !== null) {
    const message = `the measurement "${id}" failed at step ${taken.step}: ${errorMessage(reported.error)}`;
    // An earlier snapshot with rows stands, and does not say that the repetition failed.
    const isShown = earlier === null || earlier.status === "failed" || earlier.status === "skipped";
    const { phase, step } = taken;
    reporter.warn(callbackName(callback), message, isShown ? { phase, id, step } : undefined);
    reporter.fail(reported.error);
  }
  const options = { failure: reported };
  const repeated = failure === null ? "a repetition was skipped" : "a repetition failed";
  if (earlier === null) {
    const supersede = known.get(taken) === null ? null : repeated;
    return writer.commit(snapshot, [], { ...options, supersede });
  }
  const rows = await writer.rowsOrWarn(earlier, "so it is superseded");
  if (rows === null) return writer.commit(snapshot, [], { ...options, supersede: repeated });
  if (rows.length === 0) return writer.commit(snapshot, [], options);
  const repetition = {
    ...earlier,
    crossed: snapshot.crossed,
    reason: [earlier.reason, `${repeated}: ${reason}`].filter(Boolean).join("; "),
    receipt: [...earlier.receipt, ...snapshot.receipt],
  };
  return writer.commit(repetition, rows, options);
}

/** Returns the overhead of the phase so far; null before the first step, when there is no training to compare with. */
export function overheadPercent(step: number, clock: PhaseClock): number | null {
  const { wall, windows } = clock.seconds();
  const training = wall - windows;
  return step > 0 && training > 0 ? (100 * windows) / training : null;
}

/**
 * Returns a warning if every measurement of a phase before this one had the same weights at an earlier step: the measured model is
 * not the one that is trained, or training changes none of its weights. Null if the weights are unknown, and for a base.
 *
 * @param before The snapshots of the phase that belong to this training.
 */
function unchangedWeights(
  { weights, step, on }: Pick<Snapshot, "weights" | "step" | "on">,
  before: readonly Snapshot[],
): MeasurementWarning | null {
  const measured = before.filter((past) => past.on === "model" && past.weights !== null && past.step < step);
  const first = measured[0];
  if (weights === null || on === "base" || first === undefined) return null;
  if (measured.some((past) => past.weights !== weights)) return null;
  const since = Math.min(...measured.map((past) => past.step));
  const message = `Training has changed no weight of the measured model from step ${since} to step ${step}: nothing can be said about the training. Measure the model that is trained, with its adapter, and train weights that are not frozen.`;
  return warningOfAll("unchanged_weights", message);
}
