import type { RunRecord } from "@periodic-eval/contracts";
import type { Range, Json, Snapshot } from "@periodic-eval/core";
import { meanOverRuns, withinRange, type Estimate } from "@periodic-eval/core/statistics";
import { differencesOf, isOfCheckpoint, otherItems, voidReason } from "@periodic-eval/store";
import {
  curvesByCallback,
  hasValue,
  phaseEnd,
  type Measurement,
  type MetricCurve,
} from "../charts/metric-curves.ts";
import { isMap } from "../html/format.ts";
import type { RunData } from "../page-data/run-data.ts";

/** A run of an overlay, by the name that the page shows. */
export interface NamedRun {
  readonly name: string;
  readonly run: RunRecord;
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
      const entry = byMetric.get(key) ?? { curve: primary, curves: [] };
      byMetric.set(key, entry);
      entry.curves.push({ name, measurements: primary.measurements.filter(hasValue) });
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
export function sharedPhases(runs: readonly NamedRun[]): RunData["phases"] {
  const phasesOf = ({ run }: NamedRun): RunData["phases"] =>
    run.phases.map((phase) => {
      return { name: phase.name, about: null, from: phase.runStepOffset, to: phaseEnd(phase) };
    });
  const [first = [], ...rest] = runs.map(phasesOf);
  const isSame = (phases: RunData["phases"]): boolean =>
    phases.length === first.length &&
    phases.every(({ from, to }, at) => from === first[at]!.from && to === first[at]!.to);
  if (!rest.every(isSame)) return [];
  // Arms name their phases differently: coupling → em, coupling → control.
  return first.map((phase, at) => ({
    ...phase,
    name: [...new Set([phase.name, ...rest.map((phases) => phases[at]!.name)])].join(" / "),
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

/** A run that may count in a mean over runs. */
export interface RunOfMean {
  readonly name: string;
  readonly run: RunRecord;
  /** Runs of one group are averaged. Default: all are. */
  readonly group?: string;
  /** The training file that the run recorded; null or absent if it is unknown. */
  readonly config?: Json;
}

/**
 * Returns why a mean of a callback's metrics leaves out each run; null for a run that counts. Of the runs of a group that repeat one
 * training (equal seeds, or equal weights and values) the first counts, as of copies of a run in any group. Runs whose end cannot be
 * judged, that may not be paired with the first run or have more or fewer items, or that have other training options than the first
 * run of their group, do not count.
 */
export function reasonsToLeaveOut(runs: readonly RunOfMean[], id: string): readonly (string | null)[] {
  const counted: { readonly of: RunOfMean; readonly last: Snapshot }[] = [];
  return runs.map((of) => {
    const last = lastOf(of.run, id);
    if (last === undefined) return null;
    const reason = last.primary_metric === null ? null : voidReason(last, last.primary_metric);
    if (reason !== null) return `its measurement at the end cannot be judged: ${reason}`;
    const [first] = counted;
    const inGroup = counted.filter((earlier) => earlier.of.group === of.group);
    const copied = counted.find((earlier) => JSON.stringify(earlier.last) === JSON.stringify(last));
    if (copied !== undefined) return `it is a copy of ${copied.of.name}: both count once`;
    const different = first === undefined ? [] : differencesFromFirst(first.last, last);
    if (different.length > 0) return `${first!.of.name} has ${different.join(", ")}`;
    const training = inGroup[0] && trainingDifference({ of, last }, inGroup[0]);
    if (training) return `its ${training} in ${inGroup[0]!.of.name}`;
    const repeated = inGroup.find((earlier) => isRepeat(earlier.last, last));
    if (repeated !== undefined) {
      const what = hasEqualBits(repeated.last, last) ? "weights" : `seed ${last.provenance.seed}`;
      return `it repeats ${repeated.of.name}, with equal ${what}: both count once`;
    }
    counted.push({ of, last });
    return null;
  });
}

/** A pair of measurements needs some common items; values over all items of each run are compared only over equally many. */
function differencesFromFirst(first: Snapshot, last: Snapshot): readonly string[] {
  const different = differencesOf(first, last);
  const [was, is] = [first.provenance, last.provenance];
  if (different.length > 0 || was.items === is.items) return different;
  return [otherItems(was.items, is.items)];
}

const lastOf = ({ phases }: RunRecord, id: string): Snapshot | undefined =>
  phases
    .flatMap(({ snapshots }) => snapshots)
    .filter((snapshot) => snapshot.id === id && snapshot.provenance.hash !== null)
    .at(-1);

const hasEqualBits = (a: Snapshot, b: Snapshot): boolean => {
  const value = ({ metrics, primary_metric: primary }: Snapshot) => metrics[primary ?? ""]?.value;
  return a.weights !== null && a.weights === b.weights && value(a) === value(b);
};

/** Whether two runs repeat one training. Checkpoints of another program do not have its seed. */
const isRepeat = (a: Snapshot, b: Snapshot): boolean =>
  hasEqualBits(a, b) || (a.provenance.seed === b.provenance.seed && !isOfCheckpoint(a) && !isOfCheckpoint(b));

/** Options of a training file that differ between runs that are averaged, or change no number. */
const perRun = ["seed", "run_dir", "loggers", "$schema"];
/** The places of the block that says what is measured. */
const places = ["periodic_eval", "eval"];

function trainingDifference(
  here: { readonly of: RunOfMean; readonly last: Snapshot },
  there: { readonly of: RunOfMean; readonly last: Snapshot },
): string | null {
  const [config, other] = [here, there].map(({ of }) => trainingOptions(of.config ?? null));
  const isKnown = config !== null && other !== null;
  return (
    difference(here.last.max_steps, there.last.max_steps, "number of steps") ??
    (isKnown ? difference(config!, other!, "training option") : null)
  );
}

/** Returns the options on which training depends. Of what is measured, only `stop_when` changes the training. */
function trainingOptions(config: Json): Json {
  if (!isMap(config)) return config;
  const { periodic_eval: direct, eval: nested } = config;
  const block = direct ?? (isMap(nested) ? nested["periodic_eval"] : null);
  const options = Object.entries(config).filter(([key]) => ![...perRun, ...places].includes(key));
  const stopWhen = isMap(block) ? (block["stop_when"] ?? null) : null;
  return { ...Object.fromEntries(options), periodic_eval: { stop_when: stopWhen } };
}

/** Names the first part of two values that differs: `option of leakage sampling.temperature is 1, but 0`; null if they are equal. */
function difference(here: Json, there: Json, what: string, path = ""): string | null {
  if (isMap(here) && isMap(there)) {
    for (const key of new Set([...Object.keys(here), ...Object.keys(there)])) {
      const nested = difference(
        here[key] ?? null,
        there[key] ?? null,
        what,
        path === "" ? key : `${path}.${key}`,
      );
      if (nested !== null) return nested;
    }
    return null;
  }
  const [is, was] = [JSON.stringify(here), JSON.stringify(there)];
  if (is === was) return null;
  const short = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return `${what}${path === "" ? "" : ` ${path}`} is ${short(is)}, but ${short(was)}`;
}
