import type { Row } from "@periodic-eval/core";
import { metricKit, summarize } from "@periodic-eval/core/evaluations";
import { expect, it } from "vitest";
import { ifevalMetrics, type IFEvalScores } from "./score.ts";

type ScoredRow = Row & { readonly score: IFEvalScores | null };

it("counts each prompt once and each instruction once, and ignores rows without a score", () => {
  const rows: readonly ScoredRow[] = [
    { id: "1", score: { strict: [true, false, false], loose: [true, true, true] } },
    { id: "2", score: { strict: [true], loose: [true] } },
    { id: "3", score: { strict: [false], loose: [false] } },
    { id: "4", score: null },
  ];
  const values = summarize(ifevalMetrics(metricKit<ScoredRow>()), rows);
  // Strictly, 1 of 3 prompts and 2 of 5 instructions are followed; loosely, 2 of 3 and 4 of 5.
  expect(values["prompt_level_strict_acc"]?.value).toBeCloseTo(1 / 3, 12);
  expect(values["inst_level_strict_acc"]?.value).toBeCloseTo(2 / 5, 12);
  expect(values["prompt_level_loose_acc"]?.value).toBeCloseTo(2 / 3, 12);
  expect(values["inst_level_loose_acc"]?.value).toBeCloseTo(4 / 5, 12);
});

it("has an interval above 0 when no instruction is followed", () => {
  const none = { strict: [false, false], loose: [true] };
  const rows: readonly ScoredRow[] = ["1", "2", "3"].map((id) => ({ id, score: none }));
  const values = summarize(ifevalMetrics(metricKit<ScoredRow>()), rows);
  // Wilson's upper bound for 0 of 3 prompts is 3.841459 / (3 + 3.841459). It counts prompts because a prompt's instructions can
  // all pass or fail together.
  expect(values["inst_level_strict_acc"]).toMatchObject({ value: 0, ci95: [0, expect.closeTo(0.561497, 6)] });
  expect(values["inst_level_loose_acc"]).toMatchObject({ value: 1, ci95: [expect.closeTo(0.438503, 6), 1] });
});
