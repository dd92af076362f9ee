import type { MeasurementWarning, Snapshot } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { checkpointEvidence } from "@periodic-eval/store";
import type { PhaseClock } from "../budget/phase-clock.ts";
import { abortReason } from "../records/interrupted.ts";
import { newSnapshot, noTiming, type Measurement, type Position } from "../records/new-snapshot.ts";
import { adoptSnapshot } from "../records/resume.ts";
import type { Failure } from "../records/snapshot-writer.ts";
import { unchangedWeights } from "../records/unchanged-weights.ts";
import { callbackName } from "../records/reporter.ts";
import { timingOf } from "./measure-once.ts";
import type { MeasuredOutcome, Outcome, ReadyRequest, WindowParts } from "./measure-request.ts";
import { servedOf } from "./prepare.ts";

export async function recordOutcome(
  parts: WindowParts,
  ready: ReadyRequest,
  outcome: Outcome,
  position: Position,
): Promise<void> {
  const { records, signal } = parts;
  const { requested, measurement } = ready;
  switch (outcome.kind) {
    case "interrupted":
      return records.interrupted.keep(requested, position, abortReason(signal) ?? "aborted");
    case "skipped":
      await recordSkipped(parts, ready, outcome);
      break;
    case "failed":
      await recordFailed(parts, ready, outcome);
      break;
    case "adopted":
      // Its seconds paused the training that led to these weights.
      parts.clock.countEarlier(outcome.existing.timing.total_seconds);
      parts.governor.learnAdopted(outcome.existing);
      await adoptSnapshot(records, outcome.existing, measurement, requested.callback);
      break;
    case "measured":
      await recordMeasured(parts, ready, outcome, position.checkpoint);
  }
  records.interrupted.settle(requested.id);
}

async function recordMeasured(
  parts: WindowParts,
  { requested, measurement, prepared }: ReadyRequest,
  { measured, partial, decision, saved, supersede, began }: MeasuredOutcome,
  checkpoint: string | null,
): Promise<void> {
  const { records, clock, governor, disturbances } = parts;
  const { id, evaluation, callback, plannedComparisons = null } = requested;
  const { rows, provenance, weights } = measured;
  const base = newSnapshot(measurement, {
    status: partial === null ? "complete" : "partial",
    reason: partial,
    ...(saved !== undefined && { saved }),
    ...servedOf(prepared),
    provenance,
    weights,
    warnings: [...modelWarnings(parts, measurement, weights)],
    receipt: [
      ...measured.receipt,
      ...disturbances.take(),
      ...(checkpoint === null ? [] : [checkpointEvidence(checkpoint)]),
    ],
    timing: {
      ...timingOf(measured, rows.length),
      overhead_percent: overheadPercent(measurement.at.step, clock),
      ...decision,
    },
  });
  const plan = records.comparisons.plan(base, plannedComparisons);
  await records.grading.record({ base, rows, evaluation, callback, plan }, supersede);
  governor.learnMeasurement(id, measured, { rows: rows.length, seconds: clock.now() - began });
}

/** Returns the warnings that concern every metric: those of the probes, and of weights that training has not changed. */
function modelWarnings(
  { preflight, records, reporter }: WindowParts,
  { phase, on, at: { step, maxSteps } }: Measurement,
  weights: string | null,
): readonly MeasurementWarning[] {
  const before = records.known.settled().filter((one) => one.phase === phase);
  const mayBeEqual = records.training.isWarmingUp && step !== maxSteps;
  const unchanged = mayBeEqual ? null : unchangedWeights({ weights, step, on }, before);
  if (
    unchanged !== null &&
    !before.some(({ warnings }) => warnings.some(({ kind }) => kind === unchanged.kind))
  )
    reporter.warn(`phase "${phase}"`, unchanged.message);
  return [...preflight.faultsOf(on), ...(unchanged === null ? [] : [unchanged])];
}

/** Records that nothing was measured, unless this training already made a snapshot at this step. */
async function recordSkipped(
  parts: WindowParts,
  ready: ReadyRequest,
  { reason, warnings = [], decision, measured }: Outcome & { readonly kind: "skipped" },
): Promise<void> {
  const { phase, id, at } = ready.measurement;
  if (parts.records.known.isSettled({ phase, id, step: at.step })) return;
  const receipt = [...(measured?.receipt ?? []), ...parts.disturbances.take()];
  await recordWithoutRows(parts, ready, {
    status: "skipped",
    reason,
    warnings: [...warnings],
    receipt,
    timing: { ...noTiming, ...decision },
  });
}

async function recordFailed(
  parts: WindowParts,
  ready: ReadyRequest,
  { error, measured }: Outcome & { readonly kind: "failed" },
): Promise<void> {
  const { records, reporter, clock, disturbances, signal } = parts;
  const { measurement } = ready;
  const { callback, id } = ready.requested;
  const { step } = measurement.at;
  const aborted = abortReason(signal);
  const changes = {
    status: "failed" as const,
    reason: aborted ?? errorMessage(error),
    receipt: [...(measured?.receipt ?? []), ...disturbances.take()],
    ...(measured !== undefined && {
      weights: measured.weights,
      ...servedOf(ready.prepared),
      timing: { ...timingOf(measured, 0), overhead_percent: overheadPercent(step, clock) },
    }),
    ...(measured?.provenance != null && { provenance: measured.provenance }),
  };
  if (aborted === null) {
    const message = `the measurement "${id}" failed at step ${step}: ${errorMessage(error)}`;
    // An earlier snapshot with rows stands, and does not say that the repetition failed.
    const key = { phase: measurement.phase, id, step };
    const earlier = records.known.getSettled(key);
    const isShown = earlier === null || earlier.status === "failed" || earlier.status === "skipped";
    reporter.warn(callbackName(callback), message, isShown ? key : undefined);
    reporter.fail(error);
  }
  await recordWithoutRows(parts, ready, changes, aborted === null ? { callback, error } : null);
}

/** Writes a failed or skipped snapshot. A partial one that this training made at the same step keeps its rows instead. */
async function recordWithoutRows(
  { records: { known, writer } }: WindowParts,
  { measurement }: ReadyRequest,
  changes: Partial<Snapshot> & Pick<Snapshot, "status" | "reason">,
  failure: Failure | null = null,
): Promise<void> {
  const { phase, id, at } = measurement;
  const key = { phase, id, step: at.step };
  const snapshot = newSnapshot(measurement, changes);
  const repeated = changes.status === "failed" ? "a repetition failed" : "a repetition was skipped";
  const earlier = known.getSettled(key);
  if (earlier === null) {
    const supersede = known.get(key) === null ? null : repeated;
    return writer.commit(snapshot, [], { supersede, failure });
  }
  const rows = await writer.rowsOrWarn(earlier, "so it is superseded");
  if (rows === null) return writer.commit(snapshot, [], { supersede: repeated, failure });
  if (rows.length === 0) return writer.commit(snapshot, [], { failure });
  const kept = {
    ...earlier,
    crossed: [...measurement.crossed],
    reason: [earlier.reason, `${repeated}: ${changes.reason}`].filter(Boolean).join("; "),
    receipt: [...earlier.receipt, ...(changes.receipt ?? [])],
  };
  return writer.commit(kept, rows, { failure });
}

/** Returns the overhead of the phase so far; null before the first step, when there is no training to compare with. */
function overheadPercent(step: number, clock: PhaseClock): number | null {
  const { wall, windows } = clock.seconds();
  const training = wall - windows;
  return step > 0 && training > 0 ? (100 * windows) / training : null;
}
