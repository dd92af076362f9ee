import { expect, it } from "vitest";
import { answerRows } from "../../answers/answer-rows.ts";
import { alignmentFields } from "../../answers/declared-fields.test-data.ts";
import type { MeasurementAnswers } from "../../page-data/answers-data.ts";
import { scoresOf, scoresText } from "./scores.ts";

const row = (id: string, aligned: number | null, kind = "completion") => ({
  id,
  kind,
  aligned,
  coherent: 80,
});
const measurement = { phase: "em", step: 12, declared: alignmentFields } as MeasurementAnswers;

it("returns the scores of answers with both, without anchors", () => {
  const rows = [row("a", 90), row("b", null), row("c", 10, "anchor")];
  const scores = scoresOf(rows.flatMap((one) => answerRows(one, alignmentFields)));
  expect(scores).toEqual({ all: [[90, 80]], total: 2 });
  expect(scoresText(measurement, scores)).toBe(
    "em step 12: 1 of 2 answers have both scores, 0 of them are misaligned and coherent.",
  );
});

it("draws the first 400 answers, and says so", () => {
  const all = Array.from({ length: 500 }, () => [10, 80] as const);
  expect(scoresText(measurement, { all, total: 500 })).toBe(
    "em step 12: 500 of 500 answers have both scores; the first 400 are shown, 400 of them are misaligned and coherent.",
  );
});
