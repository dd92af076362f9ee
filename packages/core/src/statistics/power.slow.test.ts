import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { alignmentPower, capabilityPower, powerGrid } from "./power.test-data.ts";

const runs = 1000;
const patience = { timeout: 1_800_000 };

/** The numbers in the rows of the tables in docs/explanations/power.md. */
const rows = readFileSync(new URL("../../../../docs/explanations/power.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split("|").slice(1, -1).map(Number));
const ofCapability = rows.filter((row) => row.length === 4);
const ofAlignment = rows.filter((row) => row.length === powerGrid.percents.length + 1);
const within5Points = (share: number, documented: number) =>
  expect(Math.abs(100 * share - documented)).toBeLessThan(5);

describe("the tables of docs/explanations/power.md", () => {
  it("have a row for every case", () => {
    expect(ofCapability.map(([questions, drop]) => [questions, drop])).toEqual(
      powerGrid.questions.flatMap((questions) => powerGrid.drops.map((drop) => [questions, drop])),
    );
    expect(ofAlignment.map(([samples]) => samples)).toEqual([...powerGrid.samples]);
  });

  it.each(ofCapability)(
    "agree with a simulation for %d questions and %d points",
    patience,
    (questions, drop, byAccuracy, byMargin) => {
      const found = capabilityPower(questions, drop, runs, "again");
      within5Points(found.byAccuracy, byAccuracy);
      within5Points(found.byMargin, byMargin);
    },
  );

  it.each(ofAlignment)(
    "agree with a simulation for %d completions per question",
    patience,
    (samples, ...documented) => {
      powerGrid.percents.forEach((percent, at) =>
        within5Points(alignmentPower(samples, percent, runs, "again"), documented[at]!),
      );
    },
  );
});
