import { configError, didYouMean } from "@periodic-eval/contracts/options";
import { differenceOverRuns, meanOverRuns, type Interval } from "@periodic-eval/core/statistics";
import { meanOverDocuments, type Change, type ResultsRun, type RunSamples } from "./paired-change.ts";
import {
  changeBetween,
  summarizeResults,
  verdictOf,
  withLimits,
  type ComparedSide,
  type ResultsMetric,
  type ResultsSummary,
} from "./summarize-results.ts";

/** The runs of one method. */
export interface Method {
  /**
   * The runs' `method`, or the name of a run without one. If that name is also the `method` of other runs, the label is
   * `NAME (no method)`.
   */
  readonly label: string;
  /** Indices of runs. Runs that measured the same weights in the same way count once: the last of them. */
  readonly runs: readonly number[];
}

/** The difference between a method and the baseline. */
export interface MethodChange extends Change {
  /**
   * The units of the interval. `runs`: both methods have several runs, and the interval includes how training varies. If a
   * method has one run, the interval is over the answers to the questions and holds for these runs: `documents` in pairs,
   * `samples` as independent samples.
   */
  readonly over: "documents" | "samples" | "runs";
}

/** One metric of one method. */
export interface MethodResult {
  /** The value of the only run, or the mean over runs; null if no run has one. */
  readonly value: number | null;
  /** The interval over the documents of the only run, or over several runs. */
  readonly ci95: Interval | null;
  readonly runs: number;
  /** Null for the baseline, and if either method has no value. */
  readonly change: MethodChange | null;
}

export interface MethodMetric extends Omit<ResultsMetric, "measured"> {
  /** One result per method, in their order. */
  readonly measured: readonly MethodResult[];
}

/** A comparison of methods, each with one or several runs. */
export interface MethodsSummary {
  readonly methods: readonly Method[];
  /** Index of the method with which the others are compared. */
  readonly baseline: number;
  readonly metrics: readonly MethodMetric[];
}

export interface MethodsOptions {
  /** Labels in the order of the table. Default: all, in the order of the file. */
  readonly methods?: readonly string[] | undefined;
  /** The label with which the others are compared. Default: the first of `methods`. */
  readonly baseline?: string | undefined;
  /** Metrics by name (`acc`) or key (`gsm8k/exact_match,flexible-extract`). Default: the primary metric of each task. */
  readonly metrics?: readonly string[] | undefined;
  /** Names the source of each option in errors. Default: `methods`, `baseline` and `metrics`. */
  readonly where?: Readonly<Record<"methods" | "baseline" | "metrics", string>>;
}

const optionNames = { methods: "methods", baseline: "baseline", metrics: "metrics" } as const;

/**
 * Compares the methods of one suite's runs: one row per method, one column per task.
 *
 * Two methods with several runs each (seeds) are compared over runs, by Welch's t. If a method has only one run, the interval is
 * over documents and holds for these runs, because one run does not show how its method varies. It is paired if all runs kept
 * the same documents, with each document's mean over the runs of a method. Otherwise the two methods are independent samples,
 * and the limits of a mean are the means of the runs' limits, which is conservative. Intervals are at 95 %, without
 * correction for several comparisons.
 *
 * @param samples The documents of each run, in the order of `runs`. Default: none.
 * @throws PeriodicEvalError `config` for an unknown label or metric, with the known ones, or if there is only one method.
 */
export function summarizeMethods(
  runs: readonly ResultsRun[],
  samples: readonly RunSamples[] = [],
  options: MethodsOptions = {},
): MethodsSummary {
  const { methods: asked, baseline: base, metrics: names, where = optionNames } = options;
  const all = methodsOf(runs);
  const known = all.map(({ label }) => label);
  const named = (option: "methods" | "baseline", label: string): Method => {
    const method = all[known.indexOf(label)];
    const expected = known.join(", ") || "a method of the results, which are still empty";
    if (method === undefined) throw unknownName(where[option], label, known, expected);
    return method;
  };
  const listed = asked === undefined ? all : [...new Set(asked)].map((label) => named("methods", label));
  const reference = base === undefined ? listed[0] : named("baseline", base);
  const methods = reference === undefined || listed.includes(reference) ? listed : [reference, ...listed];
  if (reference === undefined || methods.length < 2)
    throw configError({
      where: where.methods,
      got: methods.length === 0 ? "no runs" : `only ${methods[0]!.label}`,
      expected: `two methods or more${all.length > 1 ? `: ${known.join(", ")}` : ""}`,
      fix: "Measure another one into the same results: periodic-eval eval --suite --method NAME.",
    });
  const { tasks } = summarizeResults(runs);
  const chosen =
    names === undefined
      ? tasks.flatMap(({ metrics }) => metrics.slice(0, 1))
      : chosenMetrics(
          tasks.flatMap(({ metrics, groups }) => [...metrics, ...groups]),
          names,
          where.metrics,
        );
  return {
    methods,
    baseline: methods.indexOf(reference),
    metrics: chosen.map((metric) => ({
      ...metric,
      measured: methods.map((method) => resultOf(method, reference, metric, samples)),
    })),
  };
}

const unknownName = (where: string, value: string, known: readonly string[], expected: string) =>
  configError({ where, value, expected, fix: didYouMean(value, known) ?? "Name one of these." });

/** Whether results hold methods to compare: at least one label, and something to compare it with. */
export function hasMethods(runs: readonly ResultsRun[]): boolean {
  return runs.some(({ method }) => method !== null) && methodsOf(runs).length > 1;
}

function methodsOf(runs: readonly ResultsRun[]): readonly Method[] {
  const keyOf = ({ method, name }: ResultsRun) => JSON.stringify(method === null ? { name } : { method });
  const identityOf = (run: ResultsRun, at: number) => JSON.stringify([keyOf(run), run.run_hash ?? at]);
  const last = new Map(runs.map((run, at) => [identityOf(run, at), at]));
  const labels = new Set(runs.map(({ method }) => method));
  const methods = new Map<string, { readonly label: string; readonly runs: number[] }>();
  for (const [at, run] of runs.entries()) {
    if (last.get(identityOf(run, at)) !== at) continue;
    const unlabelled = labels.has(run.name) ? `${run.name} (no method)` : run.name;
    const method = methods.get(keyOf(run)) ?? { label: run.method ?? unlabelled, runs: [] };
    methods.set(keyOf(run), method);
    method.runs.push(at);
  }
  return [...methods.values()];
}

/** @throws PeriodicEvalError `config` for a name that no metric has. */
function chosenMetrics(
  metrics: readonly ResultsMetric[],
  names: readonly string[],
  where: string,
): readonly ResultsMetric[] {
  const whole = metrics.filter(({ group }) => group === null);
  // The metric of a group (`mmlu_stem/acc,none`) is chosen by its key only.
  const isNamed = ({ key, group, metric, filter }: ResultsMetric, name: string): boolean =>
    name === key || (group === null && (name === metric || name === `${metric},${filter}`));
  const wrong = names.find((name) => !metrics.some((metric) => isNamed({ ...metric, group: null }, name)));
  if (wrong === undefined) return metrics.filter((metric) => names.some((name) => isNamed(metric, name)));
  const known = [...new Set([...whole.map(({ metric }) => metric), ...whole.map(({ key }) => key)])];
  throw unknownName(where, wrong, known, `a metric of the results: ${known.join(", ")}`);
}

function resultOf(
  method: Method,
  reference: Method,
  metric: ResultsMetric,
  samples: readonly RunSamples[],
): MethodResult {
  const [measured, base] = [valuesOf(method, metric, samples), valuesOf(reference, metric, samples)];
  const [first] = measured;
  if (first === undefined) return { value: null, ci95: null, runs: 0, change: null };
  const change = method === reference || base.length === 0 ? null : changeOf(measured, base, metric);
  if (measured.length === 1) return { value: first.value, ci95: first.ci95, runs: 1, change };
  const { value, ci95 } = meanOverRuns(measured.map((run) => run.value));
  return { value, ci95, runs: measured.length, change };
}

type Measured = ComparedSide & { readonly value: number };

const valuesOf = (
  { runs }: Method,
  { key, measured }: ResultsMetric,
  samples: readonly RunSamples[],
): readonly Measured[] =>
  runs.flatMap((at) => {
    const { value, stderr, ci95 } = measured[at]!;
    return value === null ? [] : [{ value, stderr, ci95, documents: samples[at]?.get(key) }];
  });

function changeOf(
  measured: readonly Measured[],
  base: readonly Measured[],
  { higherIsBetter }: ResultsMetric,
): MethodChange | null {
  if (measured.length === 1 || base.length === 1) {
    const change = changeBetween(meanSide(measured), meanSide(base), higherIsBetter);
    return change && { ...change, over: change.pairs === null ? "samples" : "documents" };
  }
  const values = (measured: readonly Measured[]) => measured.map(({ value }) => value);
  const { value, ci95 } = differenceOverRuns(values(measured), values(base));
  if (value === null) return null;
  return { delta: value, ci95, verdict: verdictOf(ci95, value, higherIsBetter), pairs: null, over: "runs" };
}

/**
 * Returns the mean of runs that answered the same questions. Its limits are the means of the runs' limits: the standard error of
 * a mean is at most the mean of the standard errors, however the runs correlate.
 */
function meanSide(measured: readonly Measured[]): ComparedSide {
  if (measured.length === 1) return measured[0]!;
  const mean = (values: readonly number[]) => meanOverRuns(values).value!;
  const limits = measured.flatMap((run) => {
    const { ci95 } = withLimits(run);
    return ci95 === null ? [] : [ci95];
  });
  return {
    value: mean(measured.map(({ value }) => value)),
    stderr: null,
    ci95:
      limits.length === measured.length
        ? [mean(limits.map(([low]) => low)), mean(limits.map(([, high]) => high))]
        : null,
    documents: meanOverDocuments(measured.map(({ documents }) => documents)),
  };
}

/** Returns the comparison of runs as JSON, with the content of the tables and the page. */
export function resultsData({ runs, reference, tasks, order }: ResultsSummary) {
  const metricsOf = (metrics: readonly ResultsMetric[]) =>
    metrics.map(({ key, higherIsBetter, measured }) => ({
      key,
      higher_is_better: higherIsBetter,
      runs: measured.map((value, at) => ({ name: runs[at]!.name, timestamp: runs[at]!.timestamp, ...value })),
    }));
  return {
    reference: reference === null ? null : runs[reference]!.name,
    order: order.map((at) => runs[at]!.name),
    tasks: tasks.map(({ name, metrics, groups }) => ({
      name,
      metrics: metricsOf(metrics),
      groups: metricsOf(groups),
    })),
  };
}

/** Returns the comparison of methods as JSON. `over` says what an interval is over: documents, samples or runs. */
export const methodsData = (
  { methods, baseline, metrics }: MethodsSummary,
  runs: readonly Pick<ResultsRun, "name" | "timestamp">[],
) => ({
  baseline: methods[baseline]!.label,
  methods: methods.map(({ label, runs: members }) => ({
    method: label,
    runs: members.map((at) => ({ name: runs[at]!.name, timestamp: runs[at]!.timestamp })),
  })),
  metrics: metrics.map(({ task, key, higherIsBetter, measured }) => ({
    task,
    key,
    higher_is_better: higherIsBetter,
    methods: measured.map((result, at) => ({ method: methods[at]!.label, ...result })),
  })),
});
