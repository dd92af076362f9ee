import {
  type Metric,
  type Range,
  type Row,
  type Paired,
  groupsOf,
  type Observation,
  grouped,
} from "@periodic-eval/contracts";
import { seedOf } from "../random/streams.ts";
import { total, type Interval, type Unit, rangeOf, rangeOfDifference, withinRange } from "./intervals.ts";
import {
  detectableShare,
  mcnemarExact,
  newcombePaired,
  type Cells,
  detectableMean,
  pairedT,
  welchOf,
  type PairedT,
} from "./paired-tests.ts";
import { detectableSampled, permutationTest } from "./permutation.ts";
import { familyAlpha, holmLevels } from "./planned-comparisons.ts";

/** The measurement to compare with: its rows, and where it was made. */
export interface EarlierMeasurement<R> extends Pick<Paired, "phase" | "step" | "id" | "run"> {
  readonly rows: readonly R[];
}

export interface ComparisonOptions {
  /** Names the random stream of the permutation tests; each metric derives a stream from it. */
  readonly seed: string;
  /** The metric that carries the verdict. */
  readonly primary: string | null;
  /** Significance level that this comparison may spend (`alphaOfComparison`); null if all of it is exploratory. */
  readonly alpha: number | null;
  /** Which metrics share `alpha`: only the primary one (default), or all metrics and their groups, by Holm's method. */
  readonly familywise?: "primary" | "all";
}

/**
 * Compares two measurements metric by metric and group by group, over the items that both observed.
 *
 * | metric | test and interval |
 * |---|---|
 * | rate of deterministic answers, one row per cluster | exact McNemar, Newcombe's interval |
 * | `sampled` rate or mean | permutation within the items (`item`, or the row's id) that both measurements sampled |
 * | mean, ratio, deterministic metric with clusters, sampled ratio | paired t over items or clusters |
 * | with `transform: "exp"` | the t of the untransformed metric, reported as a change of its exponential |
 * | contrast | Welch's t on the difference of its sides' paired changes |
 *
 * Intervals by t and by permutation are cut to the largest possible change (from `range`; 1 for a rate, twice as much for a
 * contrast); Newcombe's interval never exceeds it.
 *
 * `n_pairs` counts items. `delta` is now minus then. Metrics outside the family are `exploratory` and judged at level 0.05.
 * Without pairs all numbers are null.
 */
export function compareMeasurements<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  now: readonly R[],
  then: EarlierMeasurement<R>,
  options: ComparisonOptions,
): Record<string, Paired> {
  const { rows: _, ...baseline } = then;
  const compared = Object.entries(metrics).flatMap(([name, metric]) => {
    const groupsNow = groupsOf(metric, now);
    const groupsThen = groupsOf(metric, then.rows);
    const groups = [...new Set([...groupsNow.keys(), ...groupsThen.keys()])];
    const [seenNow, seenThen] = [observeRows(metric, now), observeRows(metric, then.rows)];
    const resultOf = (key: string, rows: readonly R[], earlier: readonly R[]) => ({
      key,
      metric,
      result: compare(
        metric,
        observationsOf(rows, seenNow),
        observationsOf(earlier, seenThen),
        seedOf(options.seed, key),
      ),
    });
    return [
      resultOf(name, now, then.rows),
      ...groups.map((group) =>
        resultOf(`${name}/${group}`, groupsNow.get(group) ?? [], groupsThen.get(group) ?? []),
      ),
    ];
  });
  const alphas = familyAlphas(
    compared.map(({ key, result }) => ({ key, p: result.p })),
    options,
  );
  return Object.fromEntries(
    compared.map(({ key, metric, result }, i) => {
      const alpha = alphas[i]!;
      const level = alpha ?? familyAlpha;
      const paired: Paired = {
        ...baseline,
        n_pairs: result.pairs,
        delta: result.delta,
        ci95: result.ci95 && [...result.ci95],
        test: result.p === null ? null : result.test,
        p_value: result.p,
        // A comparison without pairs tests nothing and spends nothing.
        alpha: result.pairs === 0 ? null : alpha,
        minimal_detectable_change: result.detectable(level),
        verdict: verdict(result, level, metric.options.higherIsBetter),
        exploratory: alpha === null,
      };
      return [key, paired];
    }),
  );
}

interface Comparison {
  readonly pairs: number;
  readonly delta: number | null;
  readonly ci95: Interval | null;
  readonly test: NonNullable<Paired["test"]>;
  readonly p: number | null;
  /** Returns the smallest change that the test detects at level `alpha` with power 0.8. */
  detectable(alpha: number): number | null;
}

/** Returns the level of each comparison in the family; null for those outside it. */
function familyAlphas(
  compared: readonly { readonly key: string; readonly p: number | null }[],
  { primary, alpha, familywise = "primary" }: ComparisonOptions,
): readonly (number | null)[] {
  if (alpha !== null && familywise === "all")
    return holmLevels(
      compared.map(({ p }) => p),
      alpha,
    );
  return compared.map(({ key }) => (key === primary ? alpha : null));
}

function verdict(
  { p, delta }: Comparison,
  level: number,
  higherIsBetter: boolean | undefined,
): Paired["verdict"] {
  if (p === null || delta === null) return null;
  if (p > level || delta === 0) return "no evidence";
  if (higherIsBetter === undefined) return "changed";
  return delta > 0 === higherIsBetter ? "better" : "worse";
}

function compare<R extends Row>(
  metric: Metric<R>,
  now: readonly Observed[],
  then: readonly Observed[],
  seed: string,
): Comparison {
  const { kind, options, isFirst } = metric;
  const change = rangeOfDifference(rangeOf(metric));
  if (isFirst !== undefined) {
    const ofSide = (side: boolean) => {
      const isOfSide = ({ first }: Observed) => first === side;
      return pairByItem(now.filter(isOfSide), then.filter(isOfSide));
    };
    return compareSides(ofSide(true), ofSide(false), rangeOfDifference(change));
  }
  const items = pairByItem(now, then);
  if (options.sampled === true && kind !== "ratio") return compareSampled(items, change, seed);
  if (options.sampled !== true && kind === "rate" && pairByCluster(items).length === items.length)
    return compareRates(items);
  const byMean = byT(changeOf(items), items.length, change);
  return options.transform === "exp"
    ? expChange(byMean, total(items.flatMap(({ before }) => before)))
    : byMean;
}

/** Turns the change of a mean or ratio into the change of its exponential. Null if exp overflows. */
function expChange(change: Comparison, { value, weight }: Unit): Comparison {
  const was = Math.exp(value / weight);
  const after = (by: number | null) => {
    const changed = by === null ? null : was * Math.expm1(by);
    return changed !== null && Number.isFinite(changed) ? changed : null;
  };
  const [low, high] = [after(change.ci95?.[0] ?? null), after(change.ci95?.[1] ?? null)];
  return {
    ...change,
    delta: after(change.delta),
    ci95: low === null || high === null ? null : [low, high],
    detectable: (alpha) => after(change.detectable(alpha)),
  };
}

function compareRates(pairs: readonly Pair[]): Comparison {
  const count = (now: number, then: number) =>
    pairs.filter((pair) => pair.now[0]!.value === now && pair.before[0]!.value === then).length;
  const cells: Cells = [count(1, 1), count(1, 0), count(0, 1), count(0, 0)];
  const difference = newcombePaired(cells);
  return {
    pairs: pairs.length,
    delta: difference?.delta ?? null,
    ci95: difference?.ci95 ?? null,
    test: "mcnemar_exact",
    p: difference && mcnemarExact(cells),
    detectable: (alpha) => detectableShare(cells, alpha),
  };
}

const changeOf = (items: readonly Pair[]): PairedT =>
  pairedT(pairByCluster(items).map(({ now, before }) => ({ now: total(now), before: total(before) })));

const compareSides = (first: readonly Pair[], second: readonly Pair[], change: Range): Comparison =>
  byT(welchOf(changeOf(first), changeOf(second)), first.length + second.length, change);

function byT(result: PairedT, pairs: number, change: Range): Comparison {
  return {
    pairs,
    delta: result.value,
    ci95: withinRange(result, change).ci95,
    test: "paired_t",
    p: result.p,
    detectable: (alpha) => possible(detectableMean(result, alpha), change),
  };
}

/** Returns null for a change that is larger than the metric can change. */
const possible = (size: number | null, [, max]: Range): number | null =>
  size !== null && size > max ? null : size;

function compareSampled(items: readonly Pair[], change: Range, seed: string): Comparison {
  const values = ({ now, before }: Pair) => ({
    now: now.map((observed) => observed.value),
    before: before.map((observed) => observed.value),
  });
  const result = permutationTest(items.map(values), seed);
  return {
    pairs: items.length,
    delta: result.value,
    ci95: withinRange(result, change).ci95,
    test: "permutation",
    p: result.p,
    detectable: (alpha) => possible(detectableSampled(result, alpha), change),
  };
}

/** The observation of one row, with what it is paired and clustered by. */
interface Observed extends Observation {
  readonly item: string;
  readonly cluster: string;
  /** The side of a contrast; null for other metrics. */
  readonly first: boolean | null;
}

/** Returns the observation of each row, without rows that the metric leaves out. */
function observeRows<R extends Row>(
  { options: { item, cluster, sampled }, observe, isFirst }: Metric<R>,
  rows: readonly R[],
): ReadonlyMap<R, Observed> {
  const seen = new Map<R, Observed>();
  for (const row of rows) {
    const observation = observe(row);
    if (observation === null) continue;
    const itemId = sampled === true && item !== undefined ? item(row) : row.id;
    const { value, weight } = observation;
    // Spreading the observation would take longer than everything else here.
    seen.set(row, {
      value,
      weight,
      item: itemId,
      cluster: cluster?.(row) ?? itemId,
      first: isFirst?.(row) ?? null,
    });
  }
  return seen;
}

const observationsOf = <R>(rows: readonly R[], seen: ReadonlyMap<R, Observed>): readonly Observed[] =>
  rows.flatMap((row) => seen.get(row) ?? []);

/** The observations of one item, or of all items of one cluster, at two measurements. Neither list is empty. */
interface Pair {
  readonly now: readonly Observed[];
  readonly before: readonly Observed[];
}

/** Returns one pair per item that both measurements observed. */
function pairByItem(now: readonly Observed[], then: readonly Observed[]): readonly Pair[] {
  const before = grouped(then, ({ item }) => item);
  return [...grouped(now, ({ item }) => item)].flatMap(([item, ofNow]) => {
    const ofThen = before.get(item);
    return ofThen === undefined ? [] : [{ now: ofNow, before: ofThen }];
  });
}

/** Merges the pairs of each cluster: clusters are the independent units. Without clusters each item is its own. */
const pairByCluster = (items: readonly Pair[]): readonly Pair[] =>
  [...grouped(items, ({ now }) => now[0]!.cluster).values()].map((members) =>
    members.length === 1
      ? members[0]!
      : {
          now: members.flatMap((pair) => pair.now),
          before: members.flatMap((pair) => pair.before),
        },
  );
