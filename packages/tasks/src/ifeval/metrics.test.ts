import { metricKit, summarize, type Row } from "@periodic-eval/core";
import { expect, it } from "vitest";
import { ifevalMetrics } from "./metrics.ts";
import type { IFEvalScores } from "./score.ts";

it("prompts count once, instructions each", () => {
  const rows: readonly (Row & IFEvalScores)[] = [
    { id: "1", strict: [true, false, false], loose: [true, true, true] },
    { id: "2", strict: [true], loose: [true] },
    { id: "3", strict: [false], loose: [false] },
  ];
  const values = summarize(ifevalMetrics(metricKit<Row & IFEvalScores>()), rows);
  // 1 of 3 prompts and 2 of 5 instructions; loosely 2 of 3 and 4 of 5.
  expect(values["prompt_level_strict_acc"]?.value).toBeCloseTo(1 / 3, 12);
  expect(values["inst_level_strict_acc"]?.value).toBeCloseTo(2 / 5, 12);
  expect(values["prompt_level_loose_acc"]?.value).toBeCloseTo(2 / 3, 12);
  expect(values["inst_level_loose_acc"]?.value).toBeCloseTo(4 / 5, 12);
});
