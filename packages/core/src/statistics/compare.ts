import type { Range } from "../contracts/evaluation.ts";
import type { Metric, Observation, Row } from "../contracts/evaluation.ts";
import { seedOf } from "../random/streams.ts";
import type { Paired } from "../contracts/snapshot.ts";
import { grouped, groupsOf } from "./grouping.ts";
import { total, type Interval, type Unit } from "./intervals.ts";
import { holmLevels, familyAlpha } from "./planned-comparisons.ts";
import { detectableMean, pairedT, welchOf, type PairedT } from "./paired-t.ts";
import { detectableShare, mcnemarExact, newcombePaired, type Cells } from "./paired.ts";
import { detectableSampled, permutationTest } from "./permutation.ts";
import { rangeOf, rangeOfDifference, withinRange } from "./range.ts";

export interface EarlierMeasurement<R> extends Pick<Paired, "phase" | "step" | "id" | "run"> {
  readonly rows: readonly R[];
}

export interface ComparisonOptions {
  /** Names the random stream of permutations; each metric derives its own. */
  readonly seed: string;
  /** The metric that carries the verdict. */
  readonly primary: string | null;
  /** What this look may spend (`alphaOfLook`); null where the whole comparison is exploratory. */
  readonly alpha: number | null;
  /** Which metrics share alpha: the primary alone (default), or all of them and their groups by Holm's method. */
  readonly familywise?: "primary" | "all";
}

/**
 * Compares two looks metric by metric and group by group, over the items that both observed.
 *
 * - Rates of deterministic answers, one a cluster: exact McNemar, Newcombe's interval.
 * - `sampled` rates and means: permutation within the items (`item`, or the row's id) that both looks sampled.
 * - All else (means, ratios, deterministic metrics with clusters, sampled ratios): paired t over items or clusters.
 * - Of a metric with `transform: "exp"` the change of its exp, by the t of what it is exp of.
 * - Contrasts: the difference of their sides' paired changes, by Welch's t.
 *
 * Intervals by t and by permutation are cut to how far the metric can change at all (`range`; of a rate 1, of a contrast
 * twice as far); Newcombe's stays within it.
 *
 * `n_pairs` counts items. A metric outside the family is `exploratory`, judged at 0.05. `delta` is now minus then;
 * without pairs all is null.
 */
export function compareMeasurements<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  now: readonly R[],
  then: EarlierMeasurement<R>,
  options: ComparisonOptions,
): Record<string, Paired> {
  const { rows: _, ...place } = then;
  const compared = Object.entries(metrics).flatMap(([name, metric]) => {
    const groupsNow = groupsOf(metric, now);
    const groupsThen = groupsOf(metric, then.rows);
    const groups = [...new Set([...groupsNow.keys(), ...groupsThen.keys()])];
    const [seenNow, seenThen] = [observed(metric, now), observed(metric, then.rows)];
    const resultOf = (key: string, rows: readonly R[], earlier: readonly R[]) => ({
      key,
      metric,
      result: compare(metric, among(rows, seenNow), among(earlier, seenThen), seedOf(options.seed, key)),
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
        ...place,
        n_pairs: result.pairs,
        delta: result.delta,
        ci95: result.ci95 && [...result.ci95],
        test: result.p === null ? null : result.test,
        p_value: result.p,
        // A look without pairs tests nothing, and spends nothing.
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
  detectable(alpha: number): number | null;
}

/** The level of each comparison in the family, null for those outside. */
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
      return itemsOf(now.filter(isOfSide), then.filter(isOfSide));
    };
    return compareSides(ofSide(true), ofSide(false), rangeOfDifference(change));
  }
  const items = itemsOf(now, then);
  if (options.sampled === true && kind !== "ratio") return compareSampled(items, change, seed);
  if (options.sampled !== true && kind === "rate" && clustersOf(items).length === items.length)
    return compareRates(items);
  const byMean = byT(changeOf(items), items.length, change);
  return options.transform === "exp"
    ? expChange(byMean, total(items.flatMap(({ before }) => before)))
    : byMean;
}

/** A change of a mean or ratio as the change of its exp, from what it was. Null where exp overflows. */
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

interface Observed extends Observation {
  readonly item: string;
  readonly cluster: string;
  /** The side of a contrast. */
  readonly first: boolean | null;
}

/** What each row adds, the rows that add nothing left out. */
function observed<R extends Row>(
  { options: { item, cluster, sampled }, observe, isFirst }: Metric<R>,
  rows: readonly R[],
): ReadonlyMap<R, Observed> {
  const seen = new Map<R, Observed>();
  for (const row of rows) {
    const observation = observe(row);
    if (observation === null) continue;
    const own = sampled === true && item !== undefined ? item(row) : row.id;
    const { value, weight } = observation;
    // Spreading the observation would cost more than everything else here.
    seen.set(row, {
      value,
      weight,
      item: own,
      cluster: cluster?.(row) ?? own,
      first: isFirst?.(row) ?? null,
    });
  }
  return seen;
}

function among<R>(rows: readonly R[], seen: ReadonlyMap<R, Observed>): readonly Observed[] {
  const found: Observed[] = [];
  for (const row of rows) {
    const one = seen.get(row);
    if (one !== undefined) found.push(one);
  }
  return found;
}

/** What two looks observed of one item, or of all items of one cluster; neither list is empty. */
interface Pair {
  readonly now: readonly Observed[];
  readonly before: readonly Observed[];
}

/** The items that both looks observed. */
function itemsOf(now: readonly Observed[], then: readonly Observed[]): readonly Pair[] {
  const before = grouped(then, ({ item }) => item);
  return [...grouped(now, ({ item }) => item)].flatMap(([item, ofNow]) => {
    const ofThen = before.get(item);
    return ofThen === undefined ? [] : [{ now: ofNow, before: ofThen }];
  });
}

/** The independent units: clusters of items, which are the items themselves where a metric has no clusters. */
const clustersOf = (items: readonly Pair[]): readonly Pair[] =>
  [...grouped(items, ({ now }) => now[0]!.cluster).values()].map((members) =>
    members.length === 1
      ? members[0]!
      : {
          now: members.flatMap((pair) => pair.now),
          before: members.flatMap((pair) => pair.before),
        },
  );

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
  pairedT(clustersOf(items).map(({ now, before }) => ({ now: total(now), before: total(before) })));

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

const possible = (size: number | null, [, most]: Range): number | null =>
  size !== null && size > most ? null : size;

function compareSampled(items: readonly Pair[], change: Range, seed: string): Comparison {
  const values = ({ now, before }: Pair) => ({
    now: now.map((one) => one.value),
    before: before.map((one) => one.value),
  });
  const result = permutationTest(items.map(values), seed);
  return {
    pairs: items.length,
    delta: result.value,
    ci95: withinRange(result, change).ci95,
    test: "permutation",
    p: result.p,
    detectable: (alpha) => possible(detectableSampled(result.stderr, alpha), change),
  };
}
