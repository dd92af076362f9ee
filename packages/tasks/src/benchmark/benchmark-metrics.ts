import {
  PeriodicEvalError,
  type Json,
  type Metric,
  type MetricKit,
  type MetricOptions,
} from "@periodic-eval/core";
import { nearest } from "@periodic-eval/core/internal";
import { passAtK, passHatK } from "@periodic-eval/core/statistics";
import type { BenchmarkRow } from "./benchmark-task.ts";

export interface MetricSetup {
  /** Completions of each task. */
  readonly numSamples: number;
  /** The number in the metric's name, of a metric registered as `…@k` or `…^k`; null in all others. */
  readonly k: number | null;
  readonly kit: MetricKit<BenchmarkRow>;
  /** The mean of a share that each task has, 0 to 1, with an interval within these bounds. */
  readonly share: (
    value: (row: BenchmarkRow) => number | null,
    options?: MetricOptions<BenchmarkRow>,
  ) => Metric<BenchmarkRow>;
}

/** A pure function of a task's row; the evaluator adds groups, and what tests of sampled completions need. */
export type MetricDefinition = (setup: MetricSetup) => Metric<BenchmarkRow>;

/** Metrics by name. `k` at a name's end, behind `@` or `^`, stands for any number. */
export type MetricRegistry = Readonly<Record<string, MetricDefinition>>;

const better = { higherIsBetter: true } as const;

/**
 * The metrics there are; a registry of one's own is `{ ...benchmarkMetrics, mine: ({ kit }) => kit.mean(…) }`. Completions
 * whose verifier failed are left out.
 *
 * - `mean_reward`: the mean over tasks of each task's mean reward.
 * - `pass_rate`: the mean over tasks of the share of completions that pass.
 * - `pass@k`: the chance that at least one of k completions passes, unbiased (Chen et al. 2021, arXiv:2107.03374).
 * - `pass^k`: the chance that k completions all pass, unbiased (Yao et al. 2024, arXiv:2406.12045).
 */
export const benchmarkMetrics: MetricRegistry = {
  mean_reward: ({ kit }) => kit.mean((row) => meanOf(row.rewards.filter(isNumber)), better),
  pass_rate: ({ share }) => share((row) => meanOf(graded(row).map(Number)), better),
  "pass@k": ({ share, k }) => share((row) => passAtK(graded(row).length, passes(row), k!), better),
  "pass^k": ({ share, k }) => share((row) => passHatK(graded(row).length, passes(row), k!), better),
};

/** Of an evaluator to which none are named. */
const defaultMetrics = ["mean_reward", "pass_rate"];

const isNumber = (value: number | null): value is number => value !== null;
const graded = ({ passed }: BenchmarkRow): readonly boolean[] => passed.filter((one) => one !== null);
const passes = (row: BenchmarkRow): number => graded(row).filter(Boolean).length;
const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

export interface NamedMetric {
  readonly name: string;
  readonly k: number | null;
  readonly define: MetricDefinition;
}

/**
 * The metrics of these names, in order; the first is primary.
 *
 * @throws PeriodicEvalError `config` for a name that the registry does not have, one that stands twice, and a k that is
 *   none or more than the completions of a task.
 */
export function metricsOf(
  where: string,
  names: readonly string[],
  { registry, numSamples }: { readonly registry: MetricRegistry; readonly numSamples: number },
): readonly NamedMetric[] {
  const wrong = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where, got, expected, fix });
  const found = (names.length === 0 ? defaultMetrics : names).map((name, at, all): NamedMetric => {
    if (all.indexOf(name) !== at) throw wrong(`"${name}" twice`, "metrics that differ", "Remove one.");
    const [, stem, digits] = /^(.+[@^])(0|[1-9]\d*)$/.exec(name) ?? [];
    const template = stem === undefined ? name : `${stem}k`;
    const isTemplate = /[@^]k$/.test(template) && Object.hasOwn(registry, template);
    const key = isTemplate ? template : name;
    if (!Object.hasOwn(registry, key)) {
      const close = nearest(name, Object.keys(registry));
      const fix =
        close === null ? "Name one of them, or add it to the registry." : `Did you mean "${close}"?`;
      throw wrong(`"${name}"`, `some of ${Object.keys(registry).join(", ")}`, fix);
    }
    const define = registry[key]!;
    if (!isTemplate) return { name, k: null, define };
    const k = Number(digits);
    if (!(k >= 1))
      throw wrong(
        `"${name}"`,
        "a number of 1 or more in place of k",
        `Write "${stem ?? name.slice(0, -1)}1".`,
      );
    if (k > numSamples)
      throw wrong(
        `"${name}" with numSamples ${numSamples}`,
        "a k of at most numSamples",
        `Raise numSamples to ${k}, or lower k: of fewer completions it cannot be told.`,
      );
    return { name, k, define };
  });
  return found;
}

export interface Defining {
  readonly kit: MetricKit<BenchmarkRow>;
  readonly numSamples: number;
  /** Completions are drawn at random. */
  readonly isSampled: boolean;
  readonly breakdownKeys: readonly string[];
}

/** The metrics, with groups by the tasks' metadata: `pass_rate/topic/algebra`. */
export function defineMetrics(
  named: readonly NamedMetric[],
  { kit, numSamples, isSampled, breakdownKeys }: Defining,
): Readonly<Record<string, Metric<BenchmarkRow>>> {
  // Of several completions the tasks are the independent units; of one, the share is a rate of answers.
  const cluster = numSamples > 1 ? { cluster: (row: BenchmarkRow) => row.id } : {};
  const share: MetricSetup["share"] = (value, options = {}) => ({
    ...kit.mean(value, { unit: "share", ...cluster, ...options }),
    kind: "rate",
  });
  const by = breakdownKeys.length === 0 ? {} : { by: groupsBy(breakdownKeys) };
  const defined = named.map(({ name, k, define }) => {
    const metric = define({ kit, numSamples, k, share });
    return [name, { ...metric, options: { sampled: isSampled, ...by, ...metric.options } }] as const;
  });
  return Object.fromEntries(defined);
}

const groupsBy =
  (keys: readonly string[]) =>
  ({ metadata }: BenchmarkRow): readonly string[] =>
    keys.flatMap((key) => groupValues(metadata[key]).map((value) => `${key}/${value}`));

/** Texts, numbers and truths name groups; of a list each entry does. Null where a value cannot. */
function groupValues(value: Json | undefined): readonly string[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(groupValues);
  if (typeof value === "string") return [value];
  return typeof value === "number" || typeof value === "boolean" ? [String(value)] : [];
}
