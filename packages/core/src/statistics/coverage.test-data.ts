import { readFileSync } from "node:fs";
import { clusteredShareEstimate, type Interval } from "./intervals.ts";

/** How the answers to one question resemble each other: returns the chances of 0 … m hits among its m answers. */
type Clustering = (m: number, rate: number, correlation: number) => readonly number[];

/** Three ways in which answers to one question can correlate. */
export const clusterings = {
  /** The questions' chances follow a beta distribution. */
  beta(m, rate, correlation) {
    const size = 1 / correlation - 1;
    // Pólya's urn: each answer adds a ball of its kind.
    let chances = [1];
    for (let drawn = 0; drawn < m; drawn++) {
      const next = Array.from({ length: drawn + 2 }, () => 0);
      chances.forEach((chance, hits) => {
        const ofHit = correlation === 0 ? rate : (rate * size + hits) / (size + drawn);
        next[hits]! += chance * (1 - ofHit);
        next[hits + 1]! += chance * ofHit;
      });
      chances = next;
    }
    return chances;
  },
  /** All answers to a question are equal with the chance `correlation`, else they are independent. */
  allOrNothing: (m, rate, correlation) =>
    mixture([
      [correlation * (1 - rate), binomial(m, 0)],
      [correlation * rate, binomial(m, 1)],
      [1 - correlation, binomial(m, rate)],
    ]),
  /** Some questions never give a hit; the others all have one chance. */
  twoKinds(m, rate, correlation) {
    const chance = rate + correlation * (1 - rate);
    return mixture([
      [rate / chance, binomial(m, chance)],
      [1 - rate / chance, binomial(m, 0)],
    ]);
  },
} satisfies Record<string, Clustering>;

const binomial = (m: number, rate: number): readonly number[] => clusterings.beta(m, rate, 0);

function mixture(
  parts: readonly (readonly [weight: number, chances: readonly number[]])[],
): readonly number[] {
  return parts[0]![1].map((_, hits) =>
    parts.reduce((sum, [weight, chances]) => sum + weight * chances[hits]!, 0),
  );
}

/** Returns the chances of the sum of two independent counts. */
function sumOf(first: readonly number[], second: readonly number[]): readonly number[] {
  const sum = new Float64Array(first.length + second.length - 1);
  first.forEach((chance, hits) => {
    if (chance > 1e-18)
      for (let more = 0; more < second.length; more++) sum[hits + more]! += chance * second[more]!;
  });
  return [...sum];
}

/** Returns the chances of all totals of `questions` independent questions. */
function totalOf(chances: readonly number[], questions: number): readonly number[] {
  if (questions === 1) return chances;
  const half = totalOf(chances, Math.floor(questions / 2));
  const even = sumOf(half, half);
  return questions % 2 === 0 ? even : sumOf(even, chances);
}

/** Questions with equally many answers. */
export interface Questions {
  readonly questions: number;
  readonly answers: number;
}

/** Returns the interval of each total of hits. */
export function intervalsOf(groups: readonly Questions[]): readonly Interval[] {
  const sizes = groups.flatMap(({ questions, answers }) => Array.from({ length: questions }, () => answers));
  const n = sizes.reduce((sum, size) => sum + size, 0);
  // The limits depend only on the total, so a question may have a fraction of a hit.
  return Array.from(
    { length: n + 1 },
    (_, hits) =>
      clusteredShareEstimate(sizes.map((weight) => ({ value: (hits * weight) / n, weight }))).ci95!,
  );
}

export interface Truth {
  readonly clustering: Clustering;
  readonly rate: number;
  readonly correlation: number;
}

/** Returns the exact coverage and mean width of intervals, by summing over all totals. */
export function coverageOf(
  intervals: readonly Interval[],
  groups: readonly Questions[],
  { clustering, rate, correlation }: Truth,
): { readonly coverage: number; readonly width: number } {
  let [coverage, width] = [0, 0];
  groups
    .map(({ questions, answers }) => totalOf(clustering(answers, rate, correlation), questions))
    .reduce(sumOf)
    .forEach((chance, hits) => {
      const [low, high] = intervals[hits]!;
      if (low <= rate && rate <= high) coverage += chance;
      width += chance * (high - low);
    });
  return { coverage, width };
}

const rates = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5];

/**
 * Returns the least coverage over the three clusterings and over rates from 0 to 1: a grid, and the rates just outside of the
 * limits of the hits and misses that two questions can have, where coverage falls by a step.
 */
export function leastCoverage(
  intervals: readonly Interval[],
  groups: readonly Questions[],
  correlation: number,
): number {
  const most = Math.max(...groups.map(({ answers }) => answers));
  const steps = intervals.slice(0, 2 * most + 1).flatMap(([low, high]) => [low - 1e-9, high + 1e-9]);
  const lower = [...rates, ...steps].filter((rate) => rate > 0 && rate < 1);
  const models = most === 1 || correlation === 0 ? [clusterings.beta] : Object.values(clusterings);
  const coverages = lower
    .flatMap((rate) => [rate, 1 - rate])
    .flatMap((rate) =>
      models.map((clustering) => coverageOf(intervals, groups, { clustering, rate, correlation }).coverage),
    );
  return Math.min(...coverages);
}

export const coverageGrid = {
  questions: [5, 8, 10, 20, 50, 100, 200],
  answers: [1, 2, 5, 9, 10],
  correlations: [0, 0.1, 0.25, 0.5],
  unequal: [
    [9, 8, 7, 6, 5, 4, 3, 2],
    [10, 10, 10, 1, 1],
    [10, 1, 1, 1, 1],
    [10, 10],
  ],
  unequalCorrelations: [0, 0.25, 0.5, 0.75],
} as const;

const percent = (share: number): string => (100 * share).toFixed(1);

/**
 * Returns a row of the first table in docs/explanations/coverage.md: least coverage by correlation; mean width at a rate of 5 %
 * and of 50 %, with a correlation of 0.5 and of 0.
 */
export function equalRow(size: Questions): readonly string[] {
  const groups = [size];
  const intervals = intervalsOf(groups);
  const width = (rate: number, correlation: number) =>
    percent(coverageOf(intervals, groups, { clustering: clusterings.beta, rate, correlation }).width);
  return [
    ...[size.questions, size.answers].map(String),
    ...coverageGrid.correlations.map((correlation) => percent(leastCoverage(intervals, groups, correlation))),
    ...[0.05, 0.5].flatMap((rate) => [0.5, 0].map((correlation) => width(rate, correlation))),
  ];
}

/** Returns a row of the second table: least coverage by correlation for questions with these numbers of answers. */
export function unequalRow(sizes: readonly number[]): readonly string[] {
  const groups = sizes.map((answers) => ({ questions: 1, answers }));
  const intervals = intervalsOf(groups);
  return [
    sizes.join(", "),
    ...coverageGrid.unequalCorrelations.map((correlation) =>
      percent(leastCoverage(intervals, groups, correlation)),
    ),
  ];
}

/** The rows of the tables in docs/explanations/coverage.md. */
export const documentedCoverage = readFileSync(
  new URL("../../../../docs/explanations/coverage.md", import.meta.url),
  "utf8",
)
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
