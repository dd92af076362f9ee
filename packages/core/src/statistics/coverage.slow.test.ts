// Every size; coverage.test.ts has some. Together they are a minute.
import { describe, expect, it } from "vitest";
import { documentedCoverage, equalRow, intervalsOf, leastCoverage } from "./coverage.test-data.ts";

describe("the interval of a rate over questions", () => {
  it.each(
    [5, 6, 7, 8, 10, 12, 15, 20, 30, 50, 100, 200].flatMap((questions) =>
      Array.from({ length: 10 }, (_, more) => [questions, more + 1] as const),
    ),
  )(
    "contains the true rate in at least 94 % of measurements of %d questions with %d answers",
    (questions, answers) => {
      const groups = [{ questions, answers }];
      const intervals = intervalsOf(groups);
      for (const correlation of [0, 0.25, 0.4, 0.5])
        expect(leastCoverage(intervals, groups, correlation)).toBeGreaterThan(0.94);
    },
  );

  it.each(documentedCoverage.filter((row) => row.length === 10))(
    "has the documented coverage for %s questions with %s answers",
    (...row) => {
      expect(equalRow({ questions: Number(row[0]), answers: Number(row[1]) })).toEqual(row);
    },
  );
});
