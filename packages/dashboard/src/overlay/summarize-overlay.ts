import type { Range } from "@periodic-eval/core";
import { meanOverRuns, withinRange, type Estimate } from "@periodic-eval/core/statistics";
import type { RunRecord } from "@periodic-eval/contracts";
import {
  curvesByCallback,
  hasValue,
  phaseEnd,
  type Measurement,
  type MetricCurve,
} from "../charts/metric-curves.ts";

import { reasonsToLeaveOut } from "./runs-of-mean.ts";

/** A run of an overlay, by the name that the page shows. */
export interface NamedRun {
  readonly name: string;
  readonly run: RunRecord;
}

/** A phase that all runs have at the same steps. */
export interface SharedPhase {
  readonly name: string;
  /** First and last run step. */
  readonly from: number;
  readonly to: number;
}

/** One primary metric in several runs. */
export interface OverlaidMetric {
  readonly callback: string;
  readonly metric: string;
  readonly unit: string;
  readonly curves: readonly OverlaidCurve[];
  /** Means over the runs that have a complete measurement that can be judged at this run step; only steps that at least two runs have. */
  readonly means: readonly MeanAtStep[];
  /** The runs that no mean includes, and why. */
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
}

export interface OverlaidCurve {
  readonly name: string;
  /** By run step, with a value. */
  readonly measurements: readonly Measurement[];
}

export interface MeanAtStep {
  readonly runStep: number;
  readonly runs: number;
  /** The estimand is the mean over runs: runs are the units of its t interval, not questions. */
  readonly mean: Estimate;
}

/** Returns the primary metrics of several runs, in order of appearance. */
export function summarizeOverlay(runs: readonly NamedRun[]): readonly OverlaidMetric[] {
  const byMetric = new Map<string, { curve: MetricCurve; curves: OverlaidCurve[] }>();
  for (const { name, run } of runs) {
    for (const { primary } of curvesByCallback(run)) {
      if (primary === null) continue;
      const key = JSON.stringify([primary.callback, primary.metric, primary.unit]);
      const one = byMetric.get(key) ?? { curve: primary, curves: [] };
      byMetric.set(key, one);
      one.curves.push({ name, measurements: primary.measurements.filter(hasValue) });
    }
  }
  return [...byMetric.values()].map(({ curve: { callback, metric, unit, range }, curves }) => ({
    callback,
    metric,
    unit,
    curves,
    ...meansOf(runs, curves, { callback, range }),
  }));
}

/** Returns the phases of the runs; none if the runs differ in their steps, since a band could then describe only some of them. */
export function sharedPhases(runs: readonly NamedRun[]): readonly SharedPhase[] {
  const phasesOf = ({ run }: NamedRun): readonly SharedPhase[] =>
    run.phases.map((phase) => ({ name: phase.name, from: phase.runStepOffset, to: phaseEnd(phase) }));
  const [first = [], ...others] = runs.map(phasesOf);
  const isSame = (phases: readonly SharedPhase[]): boolean =>
    phases.length === first.length &&
    phases.every(({ from, to }, at) => from === first[at]!.from && to === first[at]!.to);
  if (!others.every(isSame)) return [];
  // Arms name their phases differently: coupling → em, coupling → control.
  return first.map((phase, at) => ({
    ...phase,
    name: [...new Set([phase.name, ...others.map((phases) => phases[at]!.name)])].join(" / "),
  }));
}

function meansOf(
  all: readonly NamedRun[],
  curves: readonly OverlaidCurve[],
  { callback, range }: { readonly callback: string; readonly range: Range },
): Pick<OverlaidMetric, "means" | "leftOut"> {
  const runs = all.filter(({ name }) => curves.some((curve) => curve.name === name));
  const reasons = reasonsToLeaveOut(runs, callback);
  const leftOut = runs.flatMap(({ name }, at) =>
    reasons[at] == null ? [] : [{ name, reason: reasons[at] }],
  );
  const byStep = new Map<number, number[]>();
  for (const { name, measurements } of curves) {
    if (leftOut.some((run) => run.name === name)) continue;
    // Where one phase ends and the next begins, the later measurement of a run counts.
    const last = new Map(measurements.filter(isJudgeable).map(({ runStep, value }) => [runStep, value!]));
    for (const [step, value] of last) byStep.set(step, [...(byStep.get(step) ?? []), value]);
  }
  const means = [...byStep]
    .filter(([, values]) => values.length > 1)
    .sort(([a], [b]) => a - b)
    .map(([runStep, values]) => ({ runStep, runs: values.length, mean: overRuns(values, range) }));
  return { means, leftOut };
}

const isJudgeable = ({ status, warnings }: Measurement): boolean =>
  status === "complete" && !warnings.some((warning) => warning.void);

/** Returns the mean over runs with its t interval within the metric's range. `periodic-eval compare` prints the same numbers. */
export const overRuns = (values: readonly number[], range: Range): Estimate =>
  withinRange(meanOverRuns(values), range);
