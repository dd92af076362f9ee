import { grouped } from "@periodic-eval/contracts";
import type { Json } from "@periodic-eval/core";
import { moverDifference, z95, type Interval } from "@periodic-eval/core/statistics";
import { isMap, ownValue } from "../html/format.ts";
import {
  pairedChange,
  type Change,
  type DocumentParts,
  type ResultsRun,
  type RunSamples,
} from "./paired-change.ts";

/** One metric of one run. Unknown values are null. */
export interface MetricResult {
  readonly value: number | null;
  readonly stderr: number | null;
  readonly n: number | null;
  readonly ci95: Interval | null;
  /** Null for the reference run, and if either run has no value. */
  readonly change: Change | null;
}

export interface ResultsMetric {
  readonly task: string;
  /** The key in the file: `mmlu_stem/acc,none`. */
  readonly key: string;
  /** Null if the metric describes the whole task. */
  readonly group: string | null;
  readonly metric: string;
  readonly filter: string;
  readonly higherIsBetter: boolean | null;
  /** One result per run, in the order of the runs. */
  readonly measured: readonly MetricResult[];
}

export interface ResultsTask {
  readonly name: string;
  /** The suite's settings of this task; null if unknown. */
  readonly settings: Json;
  /** Metrics of the whole task. The first is the primary metric. */
  readonly metrics: readonly ResultsMetric[];
  /** The primary metric of each group, such as the subjects of MMLU. */
  readonly groups: readonly ResultsMetric[];
  /** Indices of runs, the best first. Runs without a value come last. */
  readonly order: readonly number[];
}

export interface ResultsSummary {
  /** Runs in the order of the file. */
  readonly runs: readonly ResultsRun[];
  /** Index of the run with which the others are compared; null if there is only one run. */
  readonly reference: number | null;
  readonly tasks: readonly ResultsTask[];
  /** Indices of runs, sorted by their mean rank over the tasks, the best first. */
  readonly order: readonly number[];
}

/**
 * Compares the runs of one suite.
 *
 * @param reference Index of the run with which the others are compared. Default: 0.
 * @param samples The documents of each run. Runs that answered the same documents are compared in pairs, all others as
 *   independent samples. Default: none.
 */
export function summarizeResults(
  runs: readonly ResultsRun[],
  reference = 0,
  samples: readonly RunSamples[] = [],
): ResultsSummary {
  const against = runs.length > 1 ? reference : null;
  const keys = [...new Set(runs.flatMap(({ metrics }) => Object.keys(metrics)))];
  const taskNames = [...new Set(runs.flatMap(({ suite }) => Object.keys(tasksOf(suite))))];
  const all = keys.map((key): ResultsMetric => {
    const directions = runs.map(({ higher_is_better: higher }) => ownValue(higher, key));
    const higherIsBetter = directions.find((direction) => direction != null) ?? null;
    const sides = runs.map((run, at) => ({
      value: ownValue(run.metrics, key) ?? null,
      stderr: ownValue(run.stderr, key) ?? null,
      n: ownValue(run.n, key) ?? null,
      ci95: ownValue(run.ci95, key) ?? null,
      documents: samples[at]?.get(key),
    }));
    const base = against === null ? undefined : sides[against];
    const measured = sides.map((side) => {
      const { documents: _, ...result } = side;
      const change = base === undefined || side === base ? null : changeBetween(side, base, higherIsBetter);
      return { ...result, change };
    });
    return { key, ...placeOf(key, taskNames), higherIsBetter, measured };
  });
  const tasks = [...grouped(all, ({ task }) => task)].map(([name, ofTask]): ResultsTask => {
    const metrics = ofTask.filter(({ group }) => group === null);
    const [primary] = metrics;
    const groups = ofTask.filter(
      ({ group, metric, filter }) =>
        group !== null && (primary === undefined || (metric === primary.metric && filter === primary.filter)),
    );
    const shown = metrics.length > 0 ? metrics : groups;
    return {
      name,
      settings: runs.length === 0 ? null : (ownValue(tasksOf(runs[0]!.suite), name) ?? null),
      metrics: shown,
      groups: metrics.length > 0 ? groups : [],
      order: shown.length === 0 ? runs.map((_, at) => at) : best(shown[0]!),
    };
  });
  return { runs, reference: against, tasks, order: byMeanRank(tasks, runs.length) };
}

/** Splits a key into its parts. The name of a group begins with the name of its task and an underscore. If several tasks match, the longest name wins. */
function placeOf(key: string, taskNames: readonly string[]) {
  const [, entry, metric, filter] = /^([^/]+)\/([^,]+),(.+)$/s.exec(key) ?? [null, key, key, "none"];
  const begins = taskNames.filter((name) => entry === name || entry.startsWith(`${name}_`));
  const task = begins.toSorted((a, b) => b.length - a.length)[0] ?? entry;
  return { task, group: task === entry ? null : entry.slice(task.length + 1), metric, filter };
}

function tasksOf(suite: Json): { readonly [name: string]: Json } {
  const tasks = isMap(suite) ? ownValue(suite, "tasks") : undefined;
  return isMap(tasks) ? tasks : {};
}

/** One side of a change: a run, or the mean of several. */
export interface ComparedSide extends Pick<MetricResult, "value" | "stderr" | "ci95"> {
  readonly documents: DocumentParts | undefined;
}

/** Returns the change between two sides, in pairs if both kept the same documents; null if a side has no value. */
export function changeBetween(
  now: ComparedSide,
  before: ComparedSide,
  higherIsBetter: boolean | null,
): Change | null {
  const paired =
    now.documents && before.documents ? pairedChange(now.documents, before.documents, higherIsBetter) : null;
  if (paired !== null) return paired;
  const change = moverDifference(withLimits(now), withLimits(before));
  const verdict = change && verdictOf(change.ci95, change.delta, higherIsBetter);
  return change && { ...change, verdict, pairs: null };
}

/** Adds a normal interval from the standard error if a result has no interval. */
export function withLimits({ value, stderr, ci95 }: Pick<MetricResult, "value" | "stderr" | "ci95">) {
  const isKnown = value !== null && stderr !== null;
  const normal: Interval | null = isKnown ? [value - z95 * stderr, value + z95 * stderr] : null;
  return { value, ci95: ci95 ?? normal };
}

/** Returns what an interval says of a change; null without an interval. */
export function verdictOf(
  ci95: Interval | null,
  delta: number,
  higherIsBetter: boolean | null,
): Change["verdict"] {
  if (ci95 === null) return null;
  if (ci95[0] <= 0 && ci95[1] >= 0) return "no evidence";
  if (higherIsBetter === null) return "changed";
  return delta > 0 === higherIsBetter ? "better" : "worse";
}

/** Returns the indices of runs, the best first. Treats higher as better if the metric has no direction. */
function best({ measured, higherIsBetter }: ResultsMetric): readonly number[] {
  const sign = higherIsBetter === false ? 1 : -1;
  return sortedBy(measured.map(({ value }) => (value === null ? Infinity : sign * value)));
}

/** Returns the indices of values, the smallest first. */
const sortedBy = (values: readonly number[]): readonly number[] =>
  values.map((_, at) => at).sort((a, b) => (values[a] === values[b] ? a - b : values[a]! - values[b]!));

/** Sorts runs by their mean rank over the tasks whose metric has a direction. Equal values share the mean of their ranks. */
function byMeanRank(tasks: readonly ResultsTask[], count: number): readonly number[] {
  const ranks = Array.from({ length: count }, (): number[] => []);
  for (const { metrics } of tasks) {
    const { measured, higherIsBetter = null } = metrics[0] ?? { measured: [] };
    if (higherIsBetter === null) continue;
    const values = measured.flatMap(({ value }) => value ?? []);
    for (const [at, { value }] of measured.entries()) {
      if (value === null) continue;
      const ahead = values.filter((other) => other !== value && other > value === higherIsBetter).length;
      const ties = values.filter((other) => other === value).length;
      ranks[at]!.push(ahead + (ties + 1) / 2);
    }
  }
  return sortedBy(
    ranks.map((ofRun) =>
      ofRun.length === 0 ? Infinity : ofRun.reduce((sum, rank) => sum + rank, 0) / ofRun.length,
    ),
  );
}
