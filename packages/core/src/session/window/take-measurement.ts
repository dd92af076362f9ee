import type {
  AnyEvaluation,
  Row,
  Guard,
  Awaitable,
  MeasurementPace,
  Evidence,
  MeasurementWarning,
  Snapshot,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { seedOf } from "../../random/streams.ts";
import type { MeasurementBudget } from "../budget/governor.ts";
import type { LearnedMeasurement } from "../budget/learned.ts";
import { sizeOf } from "../budget/share-seconds.ts";
import { abortReason } from "../records/interrupted.ts";
import { newSnapshot, noTiming, type Measurement } from "../records/new-snapshot.ts";
import { whyNotAdopted } from "../records/resume.ts";
import { isBroken, runGuarded } from "./guarded.ts";
import { countTokens, ProgressRecorder } from "./measurement-progress.ts";
import { measureRows, type RowsRequest } from "./measure-rows.ts";
import { checkUnlessAborted } from "./preflight.ts";
import { provenanceOf, type Prepared } from "./prepare.ts";

export interface MeasurementRequest extends Pick<RowsRequest, "settle"> {
  readonly measurement: Measurement;
  readonly evaluation: AnyEvaluation;
  /** Returns the model and the items; throws if one of them lacks something. */
  prepare(): Awaitable<Prepared>;
  /** Why nothing is measured; null to measure. */
  readonly skip: { readonly reason: string; readonly warnings: readonly MeasurementWarning[] } | null;
  /** Decides how many rows may be measured, and announces the decision. */
  allow(prepared: Prepared): MeasurementBudget;
  readonly guards: readonly Guard[];
  /** The guards' evidence of the measurement just before in this window. */
  readonly justLeft: readonly Evidence[];
  readonly signal: AbortSignal;
  readonly clock: () => number;
  progress(done: number, total: number, pace: MeasurementPace): void;
  /** The snapshot of this key that an interrupted training left; null if there is none. */
  readonly existing: Snapshot | null;
  /** Saves the weights before they are measured; returns undefined if they are not to be saved. */
  saveWeights(): Promise<Snapshot["saved"]> | undefined;
  /** Returns what is known of a measurement beside its own results: warnings of its model, evidence of what happened before it. */
  describe(weights: string | null): Pick<Snapshot, "warnings" | "receipt">;
  /** Returns the overhead of the phase so far, in percent; null if it is unknown. */
  overheadPercent(): number | null;
  /** Notes that an abort cut the measurement off. Null: the rows measured by then are a partial measurement. */
  readonly interrupt: (() => Promise<void>) | null;
  /** Puts the snapshot of a measurement that was skipped, or that failed with an error, into the store. */
  putWithoutRows(snapshot: Snapshot, failure: { readonly error: unknown } | null): Promise<void>;
  /** Puts the snapshot that an interrupted training left into the records of this one. */
  adopt(existing: Snapshot): Promise<void>;
  /** Grades the rows, or begins to, computes the results and puts the snapshot into the store. */
  put(base: Snapshot, rows: readonly Row[], supersede: string | null): Promise<void>;
}

export interface TakenMeasurement {
  /** What the governor learns; null if nothing was measured. */
  readonly learned: LearnedMeasurement | null;
  /** The guards' evidence; null if they were not entered. */
  readonly receipt: readonly Evidence[] | null;
}

/**
 * Takes one measurement: prepares it, asks the budget, measures inside the guards, grades, and puts the snapshot into the store. An
 * error of the evaluation becomes a `failed` snapshot.
 */
// oxlint-disable-next-line max-lines-per-function -- the steps of a measurement stand in their order
export async function takeMeasurement(request: MeasurementRequest): Promise<TakenMeasurement> {
  const { measurement, evaluation, signal, clock, existing } = request;
  const { id, phase, seed, at } = measurement;
  const nothing: TakenMeasurement = { learned: null, receipt: null };

  const began = clock();
  if (request.skip !== null) {
    const { reason, warnings } = request.skip;
    const snapshot = newSnapshot(measurement, { status: "skipped", reason, warnings: [...warnings] });
    await request.putWithoutRows(snapshot, null);
    return nothing;
  }
  if (signal.aborted && request.interrupt !== null) {
    await request.interrupt();
    return nothing;
  }

  // Prepare
  let prepared: Prepared;
  try {
    prepared = await request.prepare();
  } catch (error) {
    const reason = abortReason(signal) ?? errorMessage(error);
    const snapshot = newSnapshot(measurement, { status: "failed", reason });
    await request.putWithoutRows(snapshot, { error });
    return { ...nothing, receipt: [] };
  }

  // Allowed by the budget?
  const { items, target } = prepared;
  const total = sizeOf(evaluation, items.length).whole;
  const budget = request.allow(prepared);
  const decisionOf = (rows: number, reduced: boolean) => ({
    governor: budget.governor(rows),
    ...(budget.limit !== null && { budget: { ...budget.limit, reduced } }),
  });
  const skipped = (reason: string, receipt: readonly Evidence[]) =>
    newSnapshot(measurement, {
      status: "skipped",
      reason,
      receipt: [...receipt],
      timing: { ...noTiming, ...decisionOf(0, true) },
    });
  const isAdoptable = existing?.status === "complete" || existing?.status === "grading";
  if (budget.first.rows === 0 && budget.why !== null && !isAdoptable) {
    await request.putWithoutRows(skipped(budget.why, []), null);
    return nothing;
  }

  // Measure inside the guards
  let { weights } = target.identity;
  let provenance: Snapshot["provenance"] | null = null;
  let supersede: string | null = null;
  let saved: Snapshot["saved"];
  const guardsBegan = clock();
  const report = (done: number, pace: MeasurementPace) => request.progress(done, total, pace);
  const recorder = new ProgressRecorder({ evaluation, clock, report });
  const counted = countTokens(
    target,
    () => recorder.countCall(),
    (tokens) => recorder.showProgress({ counted: tokens }),
  );
  // A server may replace its model, which no guard of this process observes.
  const checkServed = async () => target.isServed && checkUnlessAborted(target, signal);
  const { outcome, evidence: receipt } = await runGuarded(
    request.guards,
    (index) => {
      const justLeft = request.justLeft[index];
      return { seed: seedOf(seed, phase, id, at.step), ...(justLeft !== undefined && { justLeft }) };
    },
    async (fingerprint) => {
      weights = fingerprint ?? weights;
      provenance = provenanceOf(evaluation, prepared, seed);
      supersede = existing && whyNotAdopted(existing, measurement, provenance, weights);
      if (existing !== null && supersede === null) return "adopted";
      saved = await request.saveWeights();
      await checkServed();
      const rows = await measureRows({
        evaluation,
        prepared: { ...prepared, target: counted.model },
        seed: seedOf(seed, phase, at.step),
        signal,
        recorder,
        portion: (done, seconds) => (done === 0 ? budget.first : budget.more(done, seconds)),
        ...(request.settle && { settle: request.settle }),
      });
      await checkServed();
      // Measuring may have found what the provenance names, such as the directions of traits.
      provenance = provenanceOf(evaluation, prepared, seed);
      return rows;
    },
  );
  const progress = recorder.result();
  const { measureSeconds } = progress;
  const guardsSeconds = clock() - guardsBegan - measureSeconds;
  if ("value" in outcome && outcome.value === "adopted") {
    await request.adopt(existing!);
    return { learned: { adopted: existing! }, receipt };
  }
  const rows = "value" in outcome && outcome.value !== "adopted" ? outcome.value : [];
  const isWhole = "value" in outcome && rows.length >= total;
  const aborted = abortReason(signal);
  // A trainer in another process may be gone before its guards have observed anything.
  const isProven = receipt.every(({ intact }) => intact !== null);
  // A broken receipt must be recorded, whatever happened to the measurement.
  if (aborted !== null && request.interrupt !== null && !(isWhole && isProven) && !receipt.some(isBroken)) {
    await request.interrupt();
    return nothing;
  }

  // The snapshot: why rows are missing, what it cost, what the guards saw
  const short = progress.isCut ? "its time was up" : budget.first.rows < total ? budget.why : null;
  if ("value" in outcome && rows.length === 0 && short !== null) {
    await request.putWithoutRows(skipped(short, receipt), null);
    return { learned: null, receipt };
  }
  const served = target.isServed === true ? { served: true } : {};
  const timing: Snapshot["timing"] = {
    ...noTiming,
    total_seconds: guardsSeconds + measureSeconds,
    guards_seconds: guardsSeconds,
    measure_seconds: measureSeconds,
    items: rows.length,
    tokens: counted.tokens(),
    overhead_percent: request.overheadPercent(),
  };
  const known = { ...served, ...(provenance !== null && { provenance }), weights };
  if ("error" in outcome) {
    const reason = aborted ?? errorMessage(outcome.error);
    const changes = { ...known, status: "failed" as const, reason, receipt: [...receipt], timing };
    await request.putWithoutRows(newSnapshot(measurement, changes), outcome);
    return { learned: null, receipt };
  }
  const missing = [aborted ?? short, `${rows.length} of ${total} rows`].filter(Boolean).join("; ");
  const described = request.describe(weights);
  const base = newSnapshot(measurement, {
    ...known,
    status: isWhole ? "complete" : "partial",
    reason: isWhole ? null : missing,
    ...(saved !== undefined && { saved }),
    warnings: described.warnings,
    receipt: [...receipt, ...described.receipt],
    timing: { ...timing, ...decisionOf(rows.length, !isWhole && short !== null) },
  });

  // Grade, compare, and put into the store
  await request.put(base, rows, supersede);
  return { learned: { id, progress, rows: rows.length, seconds: clock() - began }, receipt };
}
