import type { Json, Metric, MetricValue, Row, Snapshot } from "@periodic-eval/core";
import type { ChosenTask } from "../suite/open-tasks.ts";
import { type Entry, placeOf } from "./entries.ts";

type ByEntry<T> = Readonly<Record<string, T>>;

/** One task's part of lm-evaluation-harness' results. The keys are the harness'; values are by task or group. */
export interface HarnessPart {
  readonly results: ByEntry<{ readonly [key: string]: Json }>;
  /** Names of the entries with entries below. */
  readonly groups: readonly string[];
  readonly group_subtasks: ByEntry<readonly string[]>;
  readonly configs: ByEntry<Json>;
  readonly versions: ByEntry<Json>;
  readonly "n-shot": ByEntry<Json>;
  readonly higher_is_better: ByEntry<Json>;
  readonly "n-samples": ByEntry<Json>;
  readonly task_hashes: ByEntry<string>;
}

export interface Measured {
  readonly chosen: ChosenTask;
  readonly snapshot: Snapshot;
  readonly metrics: Readonly<Record<string, Metric<Row>>>;
  readonly entries: readonly Entry[];
  /** `task_hashes` of the written samples. */
  readonly hashes: Readonly<Record<string, string>>;
}

/**
 * Returns a task's part of `results_*.json`, as lm-evaluation-harness 0.4.13 writes it. A task whose metrics have groups is a group
 * itself, as MMLU is of its subjects. Deviation: `n-samples.original` is null if a suite measures only some of the documents.
 */
export function harnessPartOf(measured: Measured): HarnessPart {
  const { chosen, metrics, entries, hashes } = measured;
  const { version, settings } = chosen;
  const tasks = entries.filter(({ own }) => own.length > 0);
  const of = <T>(some: readonly Entry[], value: (entry: Entry) => T): Record<string, T> =>
    Object.fromEntries(some.map((entry) => [entry.name, value(entry)]));
  const isWhole = settings["limit"] === null && settings["subsample"] === null;
  const parents = entries.filter(({ children }) => children.length > 0);
  const higher = higherIsBetter(metrics);
  return {
    results: of(entries, (entry) => resultsOf(entry, measured)),
    groups: parents.map(({ name }) => name),
    group_subtasks: of(parents, ({ children }) => [...children]),
    configs: of(tasks, ({ name }) => configOf(name, measured)),
    versions: of(entries, () => (Number.isFinite(Number(version)) ? Number(version) : version)),
    "n-shot": of(entries, () => settings["shots"]!),
    higher_is_better: of(entries, () => higher),
    "n-samples": of(tasks, ({ own }) => ({ original: isWhole ? own.length : null, effective: own.length })),
    task_hashes: { ...hashes },
  };
}

function resultsOf(entry: Entry, measured: Measured): Record<string, Json> {
  const { metrics, snapshot } = measured;
  const names = Object.keys(metrics);
  const result: Record<string, Json> = { name: entry.name, alias: entry.name, sample_len: entry.rows.length };
  for (const [name, definition] of Object.entries(metrics)) {
    const value = valueIn(snapshot, name, entry);
    if (value === undefined) continue;
    const { metric, filter } = placeOf(name, names);
    result[`${metric},${filter}`] = value.value;
    result[`${metric}_stderr,${filter}`] = spreadOf(entry, name, definition, measured).stderr ?? "N/A";
  }
  return result;
}

const valueIn = ({ metrics }: Snapshot, name: string, { group }: Entry): MetricValue | undefined =>
  metrics[group === null ? name : `${name}/${group}`];

function spreadOf(entry: Entry, name: string, metric: Metric<Row>, measured: Measured): Spread {
  const value = valueIn(measured.snapshot, name, entry)!;
  const tasks = tasksIn(entry, measured.entries);
  if (tasks.length === 1 || !isOfDocuments(metric)) return taskSpread(metric, entry.rows, value);
  const parts = tasks.map(({ own }) => taskSpread(metric, own, value));
  return pooledSpread(parts.filter(({ n }) => n > 0));
}

/** Returns the entry and those below it that have documents of their own. */
function tasksIn(entry: Entry, entries: readonly Entry[]): readonly Entry[] {
  const below = entry.children.flatMap((child) =>
    tasksIn(
      entries.find(({ name }) => name === child)!,
      entries,
    ),
  );
  return entry.own.length > 0 ? [entry, ...below] : below;
}

function higherIsBetter(metrics: Measured["metrics"]): Record<string, boolean | null> {
  const names = Object.keys(metrics);
  return Object.fromEntries(
    Object.entries(metrics).map(([name, { options }]) => [
      placeOf(name, names).metric,
      options.higherIsBetter ?? null,
    ]),
  );
}

/** Returns the configuration that tools of lm-evaluation-harness read. The task's settings take precedence. */
function configOf(name: string, { chosen, metrics }: Measured): Json {
  const { task, evaluation, settings, version } = chosen;
  const names = Object.keys(metrics);
  const filters = [...new Set(names.map((key) => placeOf(key, names).filter))];
  const isGenerated = (evaluation.needs as readonly string[]).includes("generate");
  const metricList = Object.entries(higherIsBetter(metrics)).map(([metric, higher]) => {
    const isMean = Object.entries(metrics).some(
      ([key, { kind }]) => placeOf(key, names).metric === metric && kind !== "ratio",
    );
    return { metric, aggregation: isMean ? "mean" : "ratio", higher_is_better: higher };
  });
  return {
    task: name,
    output_type: isGenerated ? "generate_until" : "multiple_choice",
    metric_list: metricList,
    ...(filters.some((filter) => filter !== "none") && {
      filter_list: filters.map((filter) => ({ name: filter })),
    }),
    num_fewshot: settings["shots"]!,
    repeats: evaluation.samplesPerItem ?? 1,
    metadata: { version },
    ...task.settings,
  };
}

/** A standard error and its number of documents. */
interface Spread {
  readonly stderr: number | null;
  readonly n: number;
}

/** Whether a metric is a mean over independent documents. */
const isOfDocuments = ({ kind, options, isFirst }: Metric<Row>): boolean =>
  kind !== "ratio" && options.cluster === undefined && isFirst === undefined;

/**
 * Computes the standard error of a metric over the documents of one task, as lm-evaluation-harness 0.4.13 does: √(s²/n) with
 * s² = Σ(x − mean)²/(n − 1), null for fewer than 2 documents. Snapshots have √(p(1 − p)/n) for a share, which is √((n − 1)/n) of
 * that. Deviation: for ratios (perplexities) and clustered rows it returns the snapshot's value; the harness bootstraps.
 */
export function taskSpread(metric: Metric<Row>, rows: readonly Row[], value: MetricValue): Spread {
  if (!isOfDocuments(metric)) return { stderr: value.stderr, n: value.n };
  const values = rows.flatMap((row) => metric.observe(row)?.value ?? []);
  const n = values.length;
  if (n < 2) return { stderr: null, n };
  const mean = values.reduce((sum, x) => sum + x, 0) / n;
  const squares = values.reduce((sum, x) => sum + (x - mean) ** 2, 0);
  return { stderr: Math.sqrt(squares / (n - 1) / n), n };
}

/**
 * Computes the standard error of a group weighted by size, from k tasks (`pooled_sample_stderr` of lm-evaluation-harness 0.4.13):
 * s² = Σ (nᵢ − 1)·seᵢ²·nᵢ / (Σnᵢ − k), √(s² / Σnᵢ). Null if one of them is unknown.
 */
export function pooledSpread(parts: readonly Spread[]): Spread {
  const n = parts.reduce((sum, part) => sum + part.n, 0);
  if (n <= parts.length || parts.some(({ stderr }) => stderr === null)) return { stderr: null, n };
  const squares = parts.reduce((sum, part) => sum + (part.n - 1) * part.stderr! ** 2 * part.n, 0);
  return { stderr: Math.sqrt(squares / (n - parts.length) / n), n };
}
