import { describe, expect, it } from "vitest";
import {
  clusterings,
  coverageGrid,
  coverageOf,
  documentedCoverage,
  equalRow,
  intervalsOf,
  leastCoverage,
  unequalRow,
} from "./coverage.test-data.ts";

const ofEqual = documentedCoverage.filter((row) => row.length === 10);
const ofUnequal = documentedCoverage.filter((row) => row.length === 5);

describe("the interval of a rate over questions", () => {
  it.each([[5, 10] as const, [8, 9] as const])(
    "contains the true rate in at least 94 % of measurements of %d questions with %d answers",
    (questions, answers) => {
      const groups = [{ questions, answers }];
      const intervals = intervalsOf(groups);
      for (const correlation of [0, 0.25, 0.4, 0.5])
        expect(leastCoverage(intervals, groups, correlation)).toBeGreaterThan(0.94);
    },
  );

  it.each(ofEqual.filter(([questions]) => questions === "8"))(
    "has the documented coverage for %s questions with %s answers",
    (...row) => {
      expect(equalRow({ questions: Number(row[0]), answers: Number(row[1]) })).toEqual(row);
    },
  );

  it.each(ofUnequal)("has the documented coverage for questions with %s answers", (...row) => {
    expect(unequalRow(row[0]!.split(", ").map(Number))).toEqual(row);
  });

  it("is 30.1 points wide where 72 independent answers have 11.3, as documented", () => {
    const truth = { clustering: clusterings.beta, rate: 0.05, correlation: 0 };
    const width = (questions: number, answers: number) => {
      const groups = [{ questions, answers }];
      return (100 * coverageOf(intervalsOf(groups), groups, truth).width).toFixed(1);
    };
    expect([width(8, 9), width(72, 1)]).toEqual(["30.1", "11.3"]);
  });

  it("is documented for every size", () => {
    expect(ofEqual.map(([questions, answers]) => [questions, answers].map(Number))).toEqual(
      coverageGrid.questions.flatMap((questions) =>
        coverageGrid.answers.map((answers) => [questions, answers]),
      ),
    );
    expect(ofUnequal.map(([sizes]) => sizes)).toEqual(coverageGrid.unequal.map((sizes) => sizes.join(", ")));
  });
});

describe("the chances of hits of one question", () => {
  const models = Object.entries(clusterings);

  it.each(models)("have the rate and the correlation that `%s` is asked for", (_, clustering) => {
    const [m, rate, correlation] = [6, 0.2, 0.35];
    const chances = clustering(m, rate, correlation);
    const moment = (power: number) => chances.reduce((sum, chance, hits) => sum + chance * hits ** power, 0);
    expect(moment(0)).toBeCloseTo(1, 12);
    expect(moment(1)).toBeCloseTo(m * rate, 12);
    // m p(1 − p)(1 + (m − 1) · correlation) = 6 · 0.16 · 2.75
    expect(moment(2) - moment(1) ** 2).toBeCloseTo(2.64, 12);
  });

  it("give the coverage of two questions with two answers by hand", () => {
    // All or nothing with correlation 1: 0, 2 or 4 hits with chances 1/4, 1/2, 1/4; the last interval misses 0.5.
    const intervals = [0, 1, 2, 3, 4].map((hits) => [0, hits < 4 ? 0.6 : 0.4] as const);
    const truth = { clustering: clusterings.allOrNothing, rate: 0.5, correlation: 1 };
    const { coverage, width } = coverageOf(intervals, [{ questions: 2, answers: 2 }], truth);
    expect(coverage).toBeCloseTo(0.75, 12);
    expect(width).toBeCloseTo(0.55, 12);
  });
});
