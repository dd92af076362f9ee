import type { ConditionStop, PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import type { Paired, Range } from "@periodic-eval/core";
import { adapterOffId } from "@periodic-eval/core/session";
import { differencesOf, voidReason } from "@periodic-eval/store";
import {
  hasValue,
  curvesByCallback,
  stopOf,
  type Measurement,
  type CallbackCurves,
  type MetricCurve,
} from "../charts/metric-curves.ts";
import { formatDelta, overPairs, placeOf } from "../html/format.ts";

/** One metric at the start and at the end of one phase. */
export interface MetricSummary {
  readonly id: string;
  readonly metric: string;
  readonly unit: string;
  /** Possible values of the metric; infinite where the snapshots state no limit. */
  readonly range: Range;
  readonly isPrimary: boolean;
  /** Whether a higher value is better; null if neither is. */
  readonly higherIsBetter: boolean | null;
  /** The first and the last measurement of the phase so far. A failed or skipped one has the value null. */
  readonly start: Measurement;
  readonly end: Measurement;
  /** Whether the phase has one measurement only, which is both `start` and `end`: it shows no change since the start. */
  readonly isSingle: boolean;
  /** Why the end cannot be judged: a sentence with the share. Null if it can. Otherwise `change` has no verdict. */
  readonly voidReason: string | null;
  /** Why the start cannot be judged, if `change` compares with it: `change` has no verdict. Null otherwise. */
  readonly startVoidReason: string | null;
  /** The end's warnings that leave its verdict. */
  readonly warnings: readonly string[];
  /** For leakage: how often the source shows the trait. Null for other metrics and without a source. */
  readonly source: LeakageSource | null;
  /** The end compared with its baseline; null if it has none or is the baseline itself. */
  readonly change: Paired | null;
  /** How the setup of the start differs from that of the end, so that they may not be paired: `the tokenizer a (here b)`. Null if they may. */
  readonly notPaired: string | null;
  /** Why the end has no test although it can be judged: `there are too few observations`. Null if it has one, or is the only measurement. */
  readonly notTested: string | null;
  /** Whether `change` differs from end minus start, because it covers only the items that both measurements observed. */
  readonly isOverPairs: boolean;
  /** The baseline of `change` if that is not `start`: `em step 0 of capability.adapter_off`. */
  readonly against: string | null;
  /**
   * The first measurement of the phase whose comparison with the same baseline found evidence: of the end's verdict, or of any
   * change if the end found none. Null if there is none.
   */
  readonly firstEvidence: Measurement | null;
}

/** Returns the change of a metric: `+96.9 points`, or `+96.9 points over 24 paired items` if it differs from end minus start. */
export function formatChange({
  change,
  isOverPairs,
  unit,
}: Pick<MetricSummary, "change" | "isOverPairs" | "unit">): string {
  const delta = formatDelta(change?.delta, unit);
  return change !== null && isOverPairs ? `${delta} ${overPairs(change)}` : delta;
}

export interface PhaseSummary {
  readonly phase: PhaseRecord;
  readonly phaseIndex: number;
  /** The condition of `stop_when` that ended the phase; null if none did. */
  readonly stop: ConditionStop | null;
  /** Grouped by callback, each with its primary metric first; the source's rate comes before the rate of leakage. */
  readonly metrics: readonly MetricSummary[];
}

/** Whether the only measurement of a metric is at the end of its phase: it belongs in the column of the end. */
export const isOnlyAtEnd = ({ isSingle, end }: Pick<MetricSummary, "isSingle" | "end">): boolean =>
  isSingle && end.isAtEnd && !end.isAtStart;

/**
 * Returns the headings of the columns of `start` and `end`: where the first and the last measurements are, `start` and `end` or
 * their step.
 */
export function edgeHeadings(metrics: readonly MetricSummary[]): readonly [string, string] {
  const heading = (
    edges: readonly Measurement[],
    is: "isAtStart" | "isAtEnd",
    [at, other]: [string, string],
  ) => {
    const steps = new Set(edges.map(({ step }) => step));
    if (edges.every((edge) => edge[is])) return at;
    return steps.size === 1 ? `step ${edges[0]!.step}` : other;
  };
  const several = metrics.filter(({ isSingle }) => !isSingle);
  return [
    heading(
      metrics.filter((summary) => !isOnlyAtEnd(summary)).map(({ start }) => start),
      "isAtStart",
      ["start", "first"],
    ),
    heading(
      several.map(({ end }) => end),
      "isAtEnd",
      ["end", "last"],
    ),
  ];
}

/** Whether these are baseline measurements without the adapter. They run once per phase, so they have no end. */
const isBaseline = ({ id, on }: CallbackCurves): boolean => on === "base" && id.endsWith(adapterOffId(""));

/** Compares the start with the end of every phase, for each metric that has a value in it or cannot be judged at its end. */
export function summarizePhases(run: RunRecord): readonly PhaseSummary[] {
  const callbacks = curvesByCallback(run).filter((callback) => !isBaseline(callback));
  return run.phases.map((phase, phaseIndex) => ({
    phase,
    phaseIndex,
    stop: stopOf(run, phase),
    metrics: callbacks.flatMap((callback) =>
      curvesOf(callback).flatMap((curve) => metricSummary(callback, curve, phaseIndex, phase) ?? []),
    ),
  }));
}

/** Returns a callback's curves with its primary metric first, behind the source's rate of leakage. */
function curvesOf({ primary, companions }: CallbackCurves): readonly MetricCurve[] {
  const source = companions.filter(({ metric }) => metric === "source_rate");
  return [...source, ...(primary ? [primary] : []), ...companions.filter((curve) => !source.includes(curve))];
}

/** Whether a comparison uses this measurement as its baseline. The baseline can also be in another phase or run. */
const isBaselineOf = ({ phase, step }: Measurement, paired: Paired | null): boolean =>
  paired?.phase === phase && paired.step === step && paired.id === undefined && paired.run === undefined;

/** Whether a change differs from end minus start by more than rounding. */
const isNotEndMinusStart = (delta: number | null, start: number | null, end: number | null): boolean =>
  delta !== null &&
  start !== null &&
  end !== null &&
  Math.abs(delta - (end - start)) > 1e-9 * Math.max(Math.abs(start), Math.abs(end));

function metricSummary(
  callback: CallbackCurves,
  curve: MetricCurve,
  phaseIndex: number,
  { snapshots }: PhaseRecord,
): MetricSummary | null {
  const measurements = curve.measurements.filter((measurement) => measurement.phaseIndex === phaseIndex);
  const [start, end] = [measurements.at(0), measurements.at(-1)];
  const { metric, unit, range, higherIsBetter } = curve;
  if (!start || !end || !(measurements.some(hasValue) || voidReason(end, metric) !== null)) return null;
  const tested = start === end && isBaselineOf(start, end.baseline) ? null : end.baseline;
  const isAgainstStart = tested !== null && isBaselineOf(start, tested);
  const of = ({ step }: Measurement) =>
    snapshots.find((snapshot) => snapshot.id === callback.id && snapshot.step === step)!;
  const different = differencesOf(of(start), of(end));
  const source = sourceOf(callback, metric, phaseIndex);
  const reason = voidReason(end, metric);
  const startVoidReason = isAgainstStart ? voidReason(start, metric) : null;
  const isJudged = reason === null && startVoidReason === null;
  const change = tested && (isJudged ? tested : { ...tested, verdict: null });
  return {
    id: callback.id,
    metric,
    unit,
    range,
    isPrimary: curve === callback.primary,
    higherIsBetter,
    start,
    end,
    isSingle: start === end,
    voidReason: reason,
    startVoidReason,
    warnings: end.warnings.filter((warning) => !warning.void).map(({ message }) => message),
    source,
    change,
    notPaired: different.length === 0 ? null : different.join(", "),
    notTested: start === end && change === null ? null : whyNotTested(start, change),
    isOverPairs: isAgainstStart && isNotEndMinusStart(tested.delta, start.value, end.value),
    against: change === null || isAgainstStart ? null : placeOf(change),
    firstEvidence: isJudged ? firstEvidence(measurements, end.baseline) : null,
  };
}

function whyNotTested(start: Measurement, change: Paired | null): string | null {
  if (change === null)
    return start.status === "complete"
      ? "it has no baseline"
      : `it has no baseline, because the measurement at step ${start.step} is ${start.status}`;
  if (change.n_pairs === 0) return "no item was observed in both measurements";
  return change.verdict === null ? "there are too few observations" : null;
}

const hasEvidence = (paired: Paired | null): boolean =>
  paired?.verdict != null && paired.verdict !== "no evidence";

function firstEvidence(measurements: readonly Measurement[], end: Paired | null): Measurement | null {
  const isOfEnd = ({ baseline }: Measurement): boolean =>
    !hasEvidence(end) || (baseline?.verdict === end?.verdict && placeOf(baseline!) === placeOf(end!));
  return measurements.find((point) => hasEvidence(point.baseline) && isOfEnd(point)) ?? null;
}

/**
 * Moves what cannot be judged before everything else. That a source lost its trait is no fault of a measurement, so it stays in
 * its order.
 */
export const sortVoidFirst = <T extends { readonly metric: MetricSummary }>(
  primaries: readonly T[],
): readonly T[] => {
  const isFirst = ({ metric: { end, voidReason } }: T): boolean =>
    voidReason !== null && end.warnings.find((warning) => warning.void)?.kind !== "source_lost";
  return [...primaries.filter(isFirst), ...primaries.filter((primary) => !isFirst(primary))];
};

/** How often the persona that was trained to have a trait shows it, at the start and at the end of a phase. */
interface LeakageSource {
  readonly start: Measurement;
  readonly end: Measurement;
}

/** Whether a metric is the rate of leakage or that of one persona. */
const isLeakageRate = (metric: string): boolean => /^leakage_rate(\/|$)/.test(metric);

/** Returns the source's rate in a phase, for a metric of leakage that does not count the source; null for others. */
function sourceOf({ companions }: CallbackCurves, metric: string, phaseIndex: number): LeakageSource | null {
  const curve = companions.find(({ metric }) => metric === "source_rate");
  const measurements = curve?.measurements.filter((point) => point.phaseIndex === phaseIndex) ?? [];
  const [start, end] = [measurements.at(0), measurements.at(-1)];
  return isLeakageRate(metric) && start && end ? { start, end } : null;
}

/**
 * Returns a part of a metric's range as a change in its unit: 0.2 is 20 points of a share. Infinite for metrics without a bounded
 * range, such as nats.
 */
export const partOfRange = (
  { unit, range: [least, most] }: Pick<MetricSummary, "unit" | "range">,
  part: number,
): number => part * (unit === "share" || unit === "probability" ? 1 : most - least);

/** A headline says that there are too few rows if only changes beyond half of the range would have been detected. */
const headlinePart = 0.5;

/**
 * The verdict of a phase's measurements about a metric. `void`: it cannot be judged. `untested`: nothing was compared. `equal`: every row
 * has the same value in both measurements, so no detectable change is known. `too few`: no evidence, and only changes beyond the limit
 * would have been detected.
 */
export type Judgement =
  | "void"
  | "untested"
  | "equal"
  | "too few"
  | "no change"
  | "better"
  | "worse"
  | "changed";

/**
 * Judges a metric at the end of a phase. Page, terminal and gate use the same judgement.
 *
 * @param limit Largest detectable change at which `no evidence` says something.
 */
export function judgementOf(summary: MetricSummary, limit = partOfRange(summary, headlinePart)): Judgement {
  const { voidReason, change } = summary;
  if (voidReason !== null) return "void";
  if (change === null || change.verdict === null) return "untested";
  if (change.verdict !== "no evidence") return change.verdict;
  if (hasEqualRows(summary.unit, change)) return "equal";
  return isDetected(change, limit) ? "no change" : "too few";
}

/**
 * Without spread a mean has no interval. Of equal shares the detectable change is known unless there are too few. From 6 equal rows on,
 * the 95 % interval (Clopper and Pearson) of the share of rows that differ ends below half.
 */
const hasEqualRows = (unit: string, { delta, ci95, n_pairs: pairs }: Paired): boolean =>
  unit !== "share" && delta === 0 && ci95 === null && pairs >= 6;

const isDetected = ({ minimal_detectable_change: detectable }: Paired, limit: number): boolean =>
  detectable !== null && Math.abs(detectable) <= limit;

/** Returns the phases of a run as JSON, with each metric at the start and at the end. */
export const phaseData = (run: RunRecord) =>
  summarizePhases(run).map(({ phase, stop, metrics }) => ({
    name: phase.name,
    max_steps: phase.maxSteps,
    state: phase.state,
    closed_at_step: phase.closedAt,
    stop: stop && {
      condition: stop.condition,
      step: stop.step,
      reason: stop.reason,
      id: stop.id,
      measured_at: stop.measuredAt,
      clean_step: stop.cleanStep,
    },
    snapshots: phase.snapshots.length,
    evaluation_seconds: phase.evaluationSeconds,
    overhead_percent: phase.overheadPercent,
    metrics: metrics.map(({ id, metric, unit, isPrimary, start, end, change, against, ...judged }) => ({
      id,
      metric,
      unit,
      primary: isPrimary,
      cannot_be_judged: judged.voidReason,
      warnings: judged.warnings,
      start: start.value,
      start_step: start.step,
      start_status: start.status,
      end: end.value,
      end_step: end.step,
      end_status: end.status,
      delta: change?.delta ?? null,
      ci95: change?.ci95 ?? null,
      n_pairs: change?.n_pairs ?? null,
      p_value: change?.p_value ?? null,
      verdict: change?.verdict ?? null,
      against,
    })),
  }));
