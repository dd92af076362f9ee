import type { Snapshot } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { Requested } from "../records/new-snapshot.ts";
import { callbackName } from "../records/reporter.ts";
import { abortReason } from "../records/interrupted.ts";
import type { SessionRecords } from "../records/records.ts";
import type { Disturbances, WindowReporter } from "./disturbances.ts";

/** The parts of a session that record a measurement. */
export interface RecordingParts {
  readonly signal: AbortSignal;
  readonly records: SessionRecords;
  readonly disturbances: Disturbances;
  readonly reporter: WindowReporter;
}

/**
 * Puts a failed or skipped snapshot into the store. What this training already measured at the step stands: a skipped repetition
 * changes nothing, a failed one is added to its reason.
 */
export async function putWithoutRows(
  { records: { known, writer }, reporter, disturbances, signal }: RecordingParts,
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
