import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import type { IFEvalScores } from "./score.ts";

/**
 * The four metrics of IFEval, as lm-evaluation-harness names them: the share of prompts of which every instruction is
 * followed, and the share of instructions followed over all prompts together (a prompt of three counts thrice).
 */
export function ifevalMetrics<R extends Row & IFEvalScores>({
  rate,
  ratio,
}: MetricKit<R>): Record<string, Metric<R>> {
  const prompts = (followed: (row: R) => readonly boolean[]) =>
    rate((row) => followed(row).every(Boolean), { higherIsBetter: true });
  const instructions = (followed: (row: R) => readonly boolean[]) =>
    ratio((row) => [followed(row).filter(Boolean).length, followed(row).length], {
      higherIsBetter: true,
      unit: "share",
    });
  return {
    prompt_level_strict_acc: prompts((row) => row.strict),
    inst_level_strict_acc: instructions((row) => row.strict),
    prompt_level_loose_acc: prompts((row) => row.loose),
    inst_level_loose_acc: instructions((row) => row.loose),
  };
}
