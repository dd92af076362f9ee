import { expect, it } from "vitest";
import { answerRows } from "../../answers/answer-rows.ts";
import { alignmentFields } from "../../answers/declared-fields.test-data.ts";
import type { MeasurementAnswers } from "../../page-data/answers-data.ts";
import { agreementText, scoresOf, scoresText } from "./scores.ts";

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

it("says how well each judge agrees with the labels, and how many more labels narrow the interval", () => {
  const second = { aligned: 90, coherent: 80 };
  const answers = (labels: readonly (number | null)[]) =>
    labels.map((aligned, at) => {
      const [answer] = answerRows({ ...row(`q${at}`, at % 2 === 0 ? 0 : 90), second }, alignmentFields);
      return aligned === null ? answer! : { ...answer!, label: { aligned, coherent: 90 } };
    });
  expect(agreementText(answers([null, null]))).toBe("No labels at this step yet.");
  // The label of the last of ten answers differs from the judge: 0.9 agree, by chance 0.5 · 0.6 + 0.5 · 0.4 = 0.5, so κ = 0.8. Wilson: 0.596
  // to 0.982, so that κ is 0.19 to 0.96, and the width needs (0.77 / 0.4)² · 10 = 38 labels. The second judge always says aligned: 0.4
  // agree, as by chance.
  const labels = [0, 90, 0, 90, 0, 90, 0, 90, 0, 0, null];
  expect(agreementText(answers(labels))).toBe(
    "The judge and 10 labels: κ 0.80, 95 % interval [0.19, 0.96]; about 28 more labels to narrow it to 0.4. The second judge and 10 labels: κ 0.00, 95 % interval [−0.39, 0.48]; about 37 more labels to narrow it to 0.4.",
  );
  expect(agreementText(answers([0, null]))).toContain("The judge and 1 label: κ is unknown until");
  expect(agreementText(answers(Array.from({ length: 400 }, (_, at) => (at % 2 === 0 ? 0 : 90))))).toContain(
    "The judge and 400 labels: κ 1.00, 95 % interval [0.98, 1.00]; enough labels.",
  );
});
