import type { Json, Metric, MetricKit, MetricOptions } from "@periodic-eval/core";
import { configError, didYouMean } from "@periodic-eval/contracts/options";
import { passAtK, passHatK } from "@periodic-eval/core/statistics";
import type { BenchmarkRow } from "./benchmark-task.ts";

export interface MetricSetup {
  /** Completions per task. */
  readonly numSamples: number;
  /** The number in the name of a metric registered as `…@k` or `…^k`; null for all others. */
  readonly k: number | null;
  readonly kit: MetricKit<BenchmarkRow>;
  /** Returns the mean over tasks of a share from 0 to 1, with an interval within these bounds. */
  readonly share: (
    value: (row: BenchmarkRow) => number | null,
    options?: MetricOptions<BenchmarkRow>,
  ) => Metric<BenchmarkRow>;
}

/** Defines a metric as a pure function of a task's row. Groups and options for sampled completions are added later. */
export type MetricDefinition = (setup: MetricSetup) => Metric<BenchmarkRow>;

/** Metrics by name. In a name that ends in `@k` or `^k`, `k` stands for any number. */
export type MetricRegistry = Readonly<Record<string, MetricDefinition>>;

const better = { higherIsBetter: true } as const;

const meanReward: MetricDefinition = ({ kit }) =>
  kit.mean((row) => meanOf(row.rewards.filter(isNumber)), better);

/**
 * The metrics that benchmarks can name. A custom registry is `{ ...benchmarkMetrics, mine: ({ kit }) => kit.mean(…) }`. Completions
 * whose verifier failed are left out.
 *
 * - `mean_reward`: the mean over tasks of each task's mean reward. With n completions per task others call it `avg@n`.
 * - `avg`: the same under another name.
 * - `pass_rate`: the mean over tasks of the share of completions that pass.
 * - `pass@k`: the chance that at least one of k completions passes, unbiased (Chen et al. 2021, arXiv:2107.03374).
 * - `pass^k`: the chance that k completions all pass, unbiased (Yao et al. 2024, arXiv:2406.12045).
 */
export const benchmarkMetrics: MetricRegistry = {
  mean_reward: meanReward,
  avg: meanReward,
  pass_rate: ({ share }) => share((row) => meanOf(graded(row).map(Number)), better),
  "pass@k": ({ share, k }) => share((row) => passAtK(graded(row).length, passes(row), k!), better),
  "pass^k": ({ share, k }) => share((row) => passHatK(graded(row).length, passes(row), k!), better),
};

const defaultMetrics = ["mean_reward", "pass_rate"];

const isNumber = (value: number | null): value is number => value !== null;
const graded = ({ passed }: BenchmarkRow): readonly boolean[] => passed.filter((flag) => flag !== null);
const passes = (row: BenchmarkRow): number => graded(row).filter(Boolean).length;
const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

export interface NamedMetric {
  readonly name: string;
  readonly k: number | null;
  readonly define: MetricDefinition;
}

/**
 * Returns the metrics with these names, in order; the first is primary.
 *
 * @throws PeriodicEvalError `config` for an unknown or repeated name, and for a k that is not a positive integer.
 */
export function findMetrics(
  where: string,
  names: readonly string[],
  registry: MetricRegistry,
): readonly NamedMetric[] {
  return (names.length === 0 ? defaultMetrics : names).map((name, at, all): NamedMetric => {
    const nameError = (got: string, expected: string, fix: string) =>
      configError({ where, path: ["metrics", at], got, expected, fix });
    if (all.indexOf(name) !== at) throw nameError(`"${name}" twice`, "different metrics", "Remove one.");
    const [, stem, digits] = /^(.+[@^])(0|[1-9]\d*)$/.exec(name) ?? [];
    const template = stem === undefined ? name : `${stem}k`;
    const isTemplate = /[@^]k$/.test(template) && Object.hasOwn(registry, template);
    const key = isTemplate ? template : name;
    if (!Object.hasOwn(registry, key)) {
      const known = Object.keys(registry);
      const names = known.map((item) => (digits === undefined ? item : item.replace(/(?<=[@^])k$/, digits)));
      const fix = didYouMean(name, names) ?? "Name one of them, or add it to the registry.";
      throw nameError(`"${name}"`, `some of ${known.join(", ")}`, fix);
    }
    const define = registry[key]!;
    if (!isTemplate) return { name, k: null, define };
    const k = Number(digits);
    if (!(k >= 1))
      throw nameError(
        `"${name}"`,
        "a positive integer in place of k",
        `Write "${stem ?? name.slice(0, -1)}1".`,
      );
    return { name, k, define };
  });
}

/** The options of a benchmark by which its metrics are defined. */
interface DefinedBy {
  readonly metrics: readonly NamedMetric[];
  readonly numSamples: number;
  readonly temperature: number;
  readonly breakdownKeys: readonly string[];
}

/** Builds the metrics, with groups by the tasks' metadata: `pass_rate/topic/algebra`. */
export function defineMetrics(
  { metrics: named, numSamples, temperature, breakdownKeys }: DefinedBy,
  kit: MetricKit<BenchmarkRow>,
): Readonly<Record<string, Metric<BenchmarkRow>>> {
  // With several completions per task, tasks are the independent units; with one, the share is a rate of answers.
  const cluster = numSamples > 1 ? { cluster: (row: BenchmarkRow) => row.id } : {};
  const share: MetricSetup["share"] = (value, options = {}) => ({
    ...kit.mean(value, { unit: "share", ...cluster, ...options }),
    kind: "rate",
  });
  const by = breakdownKeys.length === 0 ? {} : { by: groupsBy(breakdownKeys) };
  const defined = named.map(({ name, k, define }) => {
    const metric = define({ kit, numSamples, k, share });
    return [name, { ...metric, options: { sampled: temperature > 0, ...by, ...metric.options } }] as const;
  });
  return Object.fromEntries(defined);
}

const groupsBy =
  (keys: readonly string[]) =>
  ({ metadata }: BenchmarkRow): readonly string[] =>
    keys.flatMap((key) => groupValues(metadata[key]).map((value) => `${key}/${value}`));

/** Returns the groups that a metadata value names: a string, number or boolean names one, an array one per entry. */
function groupValues(value: Json | undefined): readonly string[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(groupValues);
  if (typeof value === "string") return [value];
  return typeof value === "number" || typeof value === "boolean" ? [String(value)] : [];
}
