import { metricKit, summarize, type Row } from "@periodic-eval/core";
import { expect, it } from "vitest";
import { ifevalMetrics } from "./metrics.ts";
import type { IFEvalScores } from "./score.ts";

type ScoredRow = Row & { readonly score: IFEvalScores | null };

it("prompts count once, instructions each, and what was not asked not at all", () => {
  const rows: readonly ScoredRow[] = [
    { id: "1", score: { strict: [true, false, false], loose: [true, true, true] } },
    { id: "2", score: { strict: [true], loose: [true] } },
    { id: "3", score: { strict: [false], loose: [false] } },
    { id: "4", score: null },
  ];
  const values = summarize(ifevalMetrics(metricKit<ScoredRow>()), rows);
  // 1 of 3 prompts and 2 of 5 instructions; loosely 2 of 3 and 4 of 5.
  expect(values["prompt_level_strict_acc"]?.value).toBeCloseTo(1 / 3, 12);
  expect(values["inst_level_strict_acc"]?.value).toBeCloseTo(2 / 5, 12);
  expect(values["prompt_level_loose_acc"]?.value).toBeCloseTo(2 / 3, 12);
  expect(values["inst_level_loose_acc"]?.value).toBeCloseTo(4 / 5, 12);
});
