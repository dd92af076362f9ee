import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { Guard } from "../../contracts/guard.ts";
import type { SessionOptions } from "../../contracts/session.ts";
import type { Evidence, MeasurementWarning, Snapshot } from "../../contracts/snapshot.ts";
import { seedOf } from "../../random/streams.ts";
import { availableMemory } from "../../internal/available-memory.ts";
import type { Governor, MeasurementBudget } from "../budget/governor.ts";
import { sizeOf } from "../budget/measurement-size.ts";
import type { PhaseClock } from "../budget/phase-clock.ts";
import { abortReason } from "../records/interrupted.ts";
import type { Measurement, Requested } from "../records/new-snapshot.ts";
import type { SessionRecords } from "../records/records.ts";
import { whyNotAdopted } from "../records/resume.ts";
import { callbackName } from "../records/reporter.ts";
import { measureOnce, type Measured } from "./measure-once.ts";
import { expectedRows } from "./measure-rows.ts";
import type { Patience } from "./patience.ts";
import type { Preflight } from "./preflight.ts";
import type { Prepared } from "./prepare.ts";
import { isBroken, type Disturbances, type WindowReporter } from "./guarded.ts";

export interface WindowParts {
  readonly options: Pick<SessionOptions, "budget" | "onBrokenReceipt" | "saveAtFiring">;
  readonly guards: readonly Guard[];
  readonly signal: AbortSignal;
  readonly clock: PhaseClock;
  readonly governor: Governor;
  readonly records: SessionRecords;
  readonly preflight: Preflight;
  readonly disturbances: Disturbances;
  readonly patience: Patience;
  readonly reporter: WindowReporter;
}

/** A request with everything it needs, or the error that prevented it. */
export interface ReadyRequest {
  readonly requested: Requested;
  readonly measurement: Measurement;
  readonly prepared: Prepared | { readonly error: unknown };
}

/** The state of the open window that a request needs. */
export interface OpenWindow {
  readonly justLeft: readonly Evidence[];
  /** Saves the weights once; returns undefined without `saveAtFiring`. */
  readonly saveWeights: () => Promise<Snapshot["saved"]> | undefined;
}

/** The result of one request; `recordOutcome` turns it into a snapshot. */
export type Outcome =
  /** An abort cut it off; it leaves no snapshot. */
  | { readonly kind: "interrupted" }
  | {
      readonly kind: "skipped";
      readonly reason: string;
      readonly warnings?: readonly MeasurementWarning[];
      readonly decision: Decision;
      readonly measured?: Measured;
    }
  | { readonly kind: "failed"; readonly error: unknown; readonly measured?: Measured }
  /** A snapshot of an interrupted training already holds the result. */
  | { readonly kind: "adopted"; readonly existing: Snapshot; readonly measured: Measured }
  | MeasuredOutcome;

/** The governor's decision, as the snapshot records it. */
type Decision = Pick<Snapshot["timing"], "governor" | "budget">;

export interface MeasuredOutcome {
  readonly kind: "measured";
  readonly measured: Measured & { readonly kind: "measured" };
  /** Why rows are missing; null for a whole measurement. */
  readonly partial: string | null;
  readonly decision: Decision;
  readonly saved: Snapshot["saved"];
  /** Why the unsettled snapshot of the same key is superseded; null if there is none. */
  readonly supersede: string | null;
  /** When the request's turn came, on the clock. */
  readonly began: number;
}

/** Measures one request on the frozen weights, within its budget. An error of the evaluation becomes a `failed` outcome. */
export async function measureRequest(
  parts: WindowParts,
  ready: ReadyRequest,
  window: OpenWindow,
): Promise<Outcome> {
  const { requested, measurement, prepared } = ready;
  const { records, clock, governor, signal } = parts;
  if (!("items" in prepared)) return { kind: "failed", error: prepared.error };
  const { phase, id, at } = measurement;
  const existing = records.known.getUnsettled({ phase, id, step: at.step });
  const began = clock.now();
  const noMemory = describeMissingMemory(parts.options.budget?.minFreeBytes ?? null);
  const allowance = governor.allow({
    id,
    crossed: requested.crossed,
    size: sizeOf(requested.evaluation, prepared.items.length),
    isBaseline: records.baselines.isBaselineId(id),
    at,
  });
  const isAdoptable = existing?.status === "complete" || existing?.status === "grading";
  if (noMemory !== null) {
    const decision = decisionOf({ governor: () => "off", limit: "min_free_bytes" }, 0, true);
    return { kind: "skipped", reason: noMemory, decision };
  }
  if (allowance.announcement !== null) parts.reporter.plan(allowance.announcement);
  if (allowance.first === 0 && allowance.why !== null && !isAdoptable)
    return { kind: "skipped", reason: allowance.why, decision: decisionOf(allowance, 0, true) };

  const attempt = { prepared, window, existing, allowance };
  const { measured, saved, supersede } = await measureUnlessAdopted(parts, ready, attempt);
  if (measured.kind === "adopted") return { kind: "adopted", existing: existing!, measured };
  const expected = expectedRows(requested.evaluation, prepared);
  const isWhole = measured.kind === "measured" && measured.rows.length >= expected;
  // A broken receipt must be recorded, whatever happened to the measurement.
  if (signal.aborted && !isWhole && !measured.receipt.some(isBroken)) return { kind: "interrupted" };
  if (measured.kind === "failed") return { kind: "failed", error: measured.error, measured };
  const short = whyShort(measured, allowance, expected);
  const decision = decisionOf(allowance, measured.rows.length, !isWhole && short !== null);
  if (measured.rows.length === 0 && short !== null)
    return { kind: "skipped", reason: short, decision, measured };
  const counts = `${measured.rows.length} of ${expected} rows`;
  const partial = isWhole ? null : [abortReason(signal) ?? short, counts].filter(Boolean).join("; ");
  return { kind: "measured", measured, partial, decision, saved, supersede, began };
}

const decisionOf = (
  { governor, limit }: Pick<MeasurementBudget, "governor" | "limit">,
  rows: number,
  reduced: boolean,
): Decision => ({ governor: governor(rows), ...(limit !== null && { budget: { limit, reduced } }) });

/** Returns why fewer rows were measured than expected; null if the session did not limit them. */
function whyShort({ isCut }: Measured, { first, why }: MeasurementBudget, expected: number): string | null {
  if (isCut) return "its time was up";
  return first < expected ? why : null;
}

interface Attempt {
  readonly prepared: Prepared;
  readonly window: OpenWindow;
  readonly existing: Snapshot | null;
  readonly allowance: MeasurementBudget;
}

async function measureUnlessAdopted(
  { guards, signal, clock, patience, reporter }: WindowParts,
  { requested, measurement }: ReadyRequest,
  { prepared, window, existing, allowance }: Attempt,
) {
  const { id, phase, seed, at } = measurement;
  const evaluation: AnyEvaluation = requested.evaluation;
  const total = expectedRows(evaluation, prepared);
  let supersede: string | null = null;
  let saved: Snapshot["saved"];
  const measured = await measureOnce({
    evaluation,
    prepared,
    guards,
    justLeft: window.justLeft,
    seed: seedOf(seed, phase, id, at.step),
    stepSeed: seedOf(seed, phase, at.step),
    provenanceSeed: seed,
    signal,
    clock: () => clock.now(),
    portions: (done, seconds) => (done === 0 ? allowance.first : allowance.more(done, seconds)),
    deadline: () => allowance.deadline(),
    patience: { of: patience, where: callbackName(requested.callback) },
    progress: (done, pace) => reporter.measuring({ id, step: at.step, done, total, ...pace }),
    async before(provenance, weights) {
      supersede = existing && whyNotAdopted(existing, measurement, provenance, weights);
      if (existing !== null && supersede === null) return true;
      saved = await window.saveWeights();
      return false;
    },
  });
  return { measured, saved, supersede };
}

/** Returns why the machine has too little memory to measure; null if it has enough or the amount is unknown. */
function describeMissingMemory(minFreeBytes: number | null): string | null {
  if (minFreeBytes === null) return null;
  const free = availableMemory();
  if (free === null || free >= minFreeBytes) return null;
  return `${free} bytes of memory are free, less than the ${minFreeBytes} of budget.minFreeBytes`;
}
