import {
  type Metric,
  type MetricKit,
  type MetricOptions,
  type Observation,
  type Range,
  type Row,
  type MetricValue,
  grouped,
  groupsOf,
} from "@periodic-eval/contracts";
import { configError, dataError, quoteValue } from "@periodic-eval/contracts/options";
import {
  clusteredShareEstimate,
  expOf,
  moverDifference,
  partsShareEstimate,
  ratioEstimate,
  shareEstimate,
  total,
  type Estimate,
  rangeOf,
  rangeOfDifference,
  withinRange,
} from "../../statistics/intervals.ts";

/** Returns the constructors of metrics: each metric is a pure function of one row. */
export function metricKit<R extends Row>(): MetricKit<R> {
  return {
    rate: (hit, options = {}) =>
      metric("rate", options, (row) => {
        const isHit = booleanOf("rate", row, hit(row));
        return isHit === null ? null : { value: isHit ? 1 : 0, weight: 1 };
      }),
    mean: (value, options = {}) =>
      metric("mean", options, (row) => {
        const number = value(row);
        return number === null ? null : { value: number, weight: 1 };
      }),
    ratio: (parts, options = {}) =>
      metric("ratio", options, (row) => {
        const pair = parts(row);
        return pair === null ? null : { value: pair[0], weight: pair[1] };
      }),
    contrast(of, sideOf) {
      if (of.options.transform !== undefined) throw noTransform("a contrast");
      const isFirst = (row: R) => booleanOf("contrast", row, sideOf(row));
      const observe = (row: R) => (isFirst(row) === null ? null : of.observe(row));
      return { ...of, observe, isFirst };
    },
  };
}

function booleanOf(kind: "rate" | "contrast", { id }: Row, value: unknown): boolean | null {
  if (value === null || typeof value === "boolean") return value;
  const fix = "Return a comparison, such as `row.score > 0.5`; the average of numbers is a `mean`.";
  const expected = "true, false, or null for an unknown value";
  throw dataError(`a ${kind} of row "${id}"`, quoteValue(value), expected, fix);
}

function metric<R extends Row>(
  kind: Metric<R>["kind"],
  options: MetricOptions<R>,
  observe: (row: R) => Observation | null,
): Metric<R> {
  checkRange(kind, options.range);
  const range = rangeOf({ kind, options });
  if (options.transform !== undefined && (kind === "rate" || options.sampled === true))
    throw noTransform(kind === "rate" ? "a rate" : `a sampled ${kind}`);
  return {
    kind,
    options: { ...options, ...checkedLabels(kind, options) },
    observe(row) {
      const seen = observe(row);
      if (seen === null) return null;
      const where = `a ${kind} of row "${row.id}"`;
      if (!Number.isFinite(seen.value) || !Number.isFinite(seen.weight)) {
        const got = kind === "ratio" ? `${seen.value} / ${seen.weight}` : String(seen.value);
        const fix = "Check the row and the training loss: a diverged model gives scores that are not finite.";
        throw dataError(where, got, "finite numbers, or null for an unknown value", fix);
      }
      if (kind !== "mean" || isInRange(range, seen.value)) return seen;
      const expected = `a number in the metric's range, ${range[0]} to ${range[1]}`;
      const fix = "Check the row, or set the `range` that the metric's values have.";
      throw dataError(where, String(seen.value), expected, fix);
    },
  };
}

/** Returns the options that name groups and clusters of rows, made to return strings, and to throw for what is no name. */
function checkedLabels<R extends Row>(kind: string, options: MetricOptions<R>): MetricOptions<R> {
  const named = (key: "by" | "cluster" | "item") => (row: R) => {
    const value: unknown = options[key]!(row);
    if (isName(value)) return String(value);
    if (key === "by" && Array.isArray(value) && value.every(isName)) return value.map(String);
    if (key === "by" && (value === null || value === undefined)) return null;
    const expected = `a string, a finite number or a boolean${key === "by" ? ", an array of them, or null" : ""}`;
    const fix = "Check the name of the row's field.";
    throw dataError(`${key} of a ${kind} of row "${row.id}"`, quoteValue(value), expected, fix);
  };
  const keys = (["by", "cluster", "item"] as const).filter((key) => options[key] !== undefined);
  return Object.fromEntries(keys.map((key) => [key, named(key)]));
}

const isName = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function checkRange(kind: string, range: Range | undefined): void {
  if (range === undefined || (range.length === 2 && range[0] < range[1])) return;
  throw configError({
    where: `metricKit.${kind} options`,
    path: ["range"],
    value: range,
    expected: "the minimum and the maximum of a value",
    fix: "Write [0, 100], with -Infinity or Infinity for a missing bound.",
  });
}

/**
 * Whether a value lies in a bounded range, with a tolerance for rounding. A range with one bound is not checked: float32
 * log-probabilities are often slightly above 0.
 */
function isInRange([least, most]: Range, value: number): boolean {
  const rounding = 1e-3 * (most - least);
  return !Number.isFinite(rounding) || (value >= least - rounding && value <= most + rounding);
}

const noTransform = (got: string) =>
  configError({
    where: "metric options",
    path: ["transform"],
    got,
    expected: "a mean or a ratio that is not sampled and not part of a contrast",
    fix: "Remove `transform`.",
  });

/** Computes every metric over all rows and, for a metric with groups, `name/group` over the rows of each group. */
export function summarize<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  rows: readonly R[],
): Record<string, MetricValue> {
  const values: Record<string, MetricValue> = {};
  for (const [name, metric] of Object.entries(metrics)) {
    values[name] = valueOf(metric, rows);
    for (const [group, members] of groupsOf(metric, rows))
      values[`${name}/${group}`] = valueOf(metric, members);
  }
  return values;
}

/** Returns the name of the metric that carries the verdict: the one marked `primary`, else the first; null without metrics. */
export function primaryMetric<R extends Row>(metrics: Readonly<Record<string, Metric<R>>>): string | null {
  const names = Object.keys(metrics);
  const marked = names.filter((name) => metrics[name]!.options.primary === true);
  if (marked.length > 1) {
    throw configError({
      where: "evaluation metrics",
      got: `${marked.length} primary metrics (${marked.join(", ")})`,
      expected: "at most one",
      fix: "Mark the one metric that decides the verdict.",
    });
  }
  return marked[0] ?? names[0] ?? null;
}

function valueOf<R extends Row>(metric: Metric<R>, rows: readonly R[]): MetricValue {
  const { kind, options, isFirst } = metric;
  const isExp = options.transform === "exp";
  const ofValues = isFirst === undefined ? rangeOf(metric) : rangeOfDifference(rangeOf(metric));
  const { n, ...uncut } = isFirst === undefined ? sumUp(metric, rows) : contrastOf(metric, isFirst, rows);
  const cut = withinRange(uncut, ofValues);
  const { value, stderr, ci95 } = isExp ? expOf(cut) : cut;
  const range: Range = isExp ? [Math.exp(ofValues[0]), Math.exp(ofValues[1])] : ofValues;
  return {
    value,
    n,
    stderr,
    ci95: ci95 && [...ci95],
    estimand: kind === "rate" && options.cluster === undefined ? "given_questions" : "over_questions",
    unit: options.unit ?? (kind === "rate" ? "share" : ""),
    higher_is_better: options.higherIsBetter ?? null,
    ...(range.some(Number.isFinite) && { range: [bound(range[0]), bound(range[1])] }),
  };
}

/** JSON cannot represent infinity. */
const bound = (edge: number): number | null => (Number.isFinite(edge) ? edge : null);

type Counted = Estimate & { readonly n: number };

/** Estimates over rows or clusters of rows. `valueOf` clips the interval of a mean or ratio to its range. */
function sumUp<R extends Row>({ kind, options, observe }: Metric<R>, rows: readonly R[]): Counted {
  const { cluster } = options;
  const seen = rows.flatMap((row) => {
    const observation = observe(row);
    return observation === null ? [] : [{ ...observation, cluster: cluster?.(row) }];
  });
  if (kind === "rate" && cluster === undefined)
    return { n: seen.length, ...shareEstimate(total(seen).value, seen.length) };
  // The parts of a ratio's row are not independent observations: without clusters each row is one.
  const units = cluster === undefined ? seen : [...grouped(seen, (row) => row.cluster!).values()].map(total);
  const [least, most] = rangeOf({ kind, options });
  const isShareOfParts = kind === "ratio" && least === 0 && most === 1;
  const estimate =
    kind === "rate" ? clusteredShareEstimate : isShareOfParts ? partsShareEstimate : ratioEstimate;
  return { n: seen.length, ...estimate(units) };
}

/** The standard error of a difference of independent estimates is √(a² + b²). */
function contrastOf<R extends Row>(
  of: Metric<R>,
  isFirst: (row: R) => boolean | null,
  rows: readonly R[],
): Counted {
  const side = (first: boolean) =>
    sumUp(
      of,
      rows.filter((row) => isFirst(row) === first),
    );
  const [first, second] = [side(true), side(false)];
  const difference = moverDifference(first, second);
  return {
    value: difference?.delta ?? null,
    n: first.n + second.n,
    stderr: difference && hypotenuse(first.stderr, second.stderr),
    ci95: difference?.ci95 ?? null,
  };
}

const hypotenuse = (a: number | null, b: number | null) =>
  a === null || b === null ? null : Math.hypot(a, b);
