import type { Metric, Observation, Row } from "../evaluation/types.ts";
import { seedOf } from "../random/streams.ts";
import type { Paired } from "../snapshots/schema.ts";
import { grouped, groupsOf } from "./grouping.ts";
import { total, type Interval } from "./intervals.ts";
import { holmLevels, familyAlpha } from "./looks.ts";
import { detectableMean, pairedT, welchOf, type PairedT } from "./paired-t.ts";
import { detectableShare, mcnemarExact, newcombePaired, type Cells } from "./paired.ts";
import { detectableSampled, permutationTest } from "./permutation.ts";

export interface EarlierLook<R> {
  readonly rows: readonly R[];
  readonly phase: string;
  readonly step: number;
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
 * - Rates of deterministic answers: exact McNemar, Newcombe's interval.
 * - `sampled` rates and means: permutation within questions (`cluster`, or the row's id); `n_pairs` counts questions.
 * - All else (means, ratios, deterministic metrics with clusters, sampled ratios): paired t over rows or clusters.
 * - Contrasts: the difference of their sides' paired changes, by Welch's t.
 *
 * A metric outside the family is `exploratory`, judged at 0.05. `delta` is now minus then; without pairs all is null.
 */
export function compareLooks<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  now: readonly R[],
  then: EarlierLook<R>,
  options: ComparisonOptions,
): Record<string, Paired> {
  const compared = Object.entries(metrics).flatMap(([name, metric]) => {
    const groupsNow = groupsOf(metric, now);
    const groupsThen = groupsOf(metric, then.rows);
    const groups = [...new Set([...groupsNow.keys(), ...groupsThen.keys()])];
    const looks = [
      { key: name, rows: now, earlier: then.rows },
      ...groups.map((group) => ({
        key: `${name}/${group}`,
        rows: groupsNow.get(group) ?? [],
        earlier: groupsThen.get(group) ?? [],
      })),
    ];
    return looks.map(({ key, rows, earlier }) => ({
      key,
      metric,
      result: compare(metric, rows, earlier, seedOf(options.seed, key)),
    }));
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
        phase: then.phase,
        step: then.step,
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
  now: readonly R[],
  then: readonly R[],
  seed: string,
): Comparison {
  const { kind, options, isFirst } = metric;
  if (isFirst !== undefined) {
    const ofSide = (first: boolean) => {
      const isOfSide = (row: R) => isFirst(row) === first;
      return unitsOf(metric, now.filter(isOfSide), then.filter(isOfSide));
    };
    return compareSides(ofSide(true), ofSide(false));
  }
  const { pairs, units } = unitsOf(metric, now, then);
  if (options.sampled === true && kind !== "ratio") return compareSampled(units, kind, seed);
  if (options.sampled !== true && options.cluster === undefined && kind === "rate")
    return compareRates(units);
  return { ...compareUnits(units), pairs };
}

interface Units {
  /** How many pairs a comparison says it has: questions of sampled metrics, else rows. */
  readonly pairs: number;
  readonly units: readonly Pair[];
}

/** The independent units that both looks observed: rows, or the rows of a cluster. */
function unitsOf<R extends Row>(metric: Metric<R>, now: readonly R[], then: readonly R[]): Units {
  const looks = [observed(metric, now), observed(metric, then)] as const;
  if (metric.options.sampled === true) {
    const questions = joined(grouped(looks[0], questionOf), grouped(looks[1], questionOf));
    return { pairs: questions.length, units: questions };
  }
  const pairs = joined(
    grouped(looks[0], (one) => one.id),
    grouped(looks[1], (one) => one.id),
  );
  if (metric.options.cluster === undefined) return { pairs: pairs.length, units: pairs };
  const clusters = [...grouped(pairs, ({ now: [first] }) => questionOf(first!)).values()];
  const merged = clusters.map((members) => ({
    now: members.flatMap((pair) => pair.now),
    before: members.flatMap((pair) => pair.before),
  }));
  return { pairs: pairs.length, units: merged };
}

type Observed = Observation & { readonly id: string; readonly cluster: string | null };

interface Pair {
  readonly now: readonly Observed[];
  readonly before: readonly Observed[];
}

function observed<R extends Row>(metric: Metric<R>, rows: readonly R[]): Observed[] {
  return rows.flatMap((row) => {
    const seen = metric.observe(row);
    return seen === null ? [] : [{ ...seen, id: row.id, cluster: metric.options.cluster?.(row) ?? null }];
  });
}

const questionOf = ({ id, cluster }: Observed): string => cluster ?? id;

const joined = (now: Map<string, Observed[]>, then: Map<string, Observed[]>): Pair[] =>
  [...now].flatMap(([key, ofNow]) => {
    const ofThen = then.get(key);
    return ofThen === undefined ? [] : [{ now: ofNow, before: ofThen }];
  });

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

const pairedTOf = (pairs: readonly Pair[]): PairedT =>
  pairedT(pairs.map(({ now, before }) => ({ now: total(now), before: total(before) })));

const compareUnits = (pairs: readonly Pair[]): Comparison => byT(pairedTOf(pairs), pairs.length);

const compareSides = (first: Units, second: Units): Comparison =>
  byT(welchOf(pairedTOf(first.units), pairedTOf(second.units)), first.pairs + second.pairs);

function byT(result: PairedT, pairs: number): Comparison {
  return {
    pairs,
    delta: result.value,
    ci95: result.ci95,
    test: "paired_t",
    p: result.p,
    detectable: (alpha) => detectableMean(result, alpha),
  };
}

function compareSampled(questions: readonly Pair[], kind: Metric<Row>["kind"], seed: string): Comparison {
  const values = ({ now, before }: Pair) => ({
    now: now.map((one) => one.value),
    before: before.map((one) => one.value),
  });
  const result = permutationTest(questions.map(values), seed);
  return {
    pairs: questions.length,
    delta: result.value,
    // The normal interval knows no bounds; two shares differ by 1 at most.
    ci95:
      result.ci95 &&
      (kind === "rate" ? [Math.max(-1, result.ci95[0]), Math.min(1, result.ci95[1])] : result.ci95),
    test: "permutation",
    p: result.p,
    detectable: (alpha) => detectableSampled(result.stderr, alpha),
  };
}
