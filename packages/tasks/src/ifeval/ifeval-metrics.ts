import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import type { IFEvalScores } from "./score.ts";

/** Null where nothing was asked: such rows count in no metric. */
interface Scored extends Row {
  readonly score: IFEvalScores | null;
}

/**
 * The four metrics of IFEval, as lm-evaluation-harness names them: the share of prompts of which every instruction is
 * followed, and the share of instructions followed over all prompts together (a prompt of three counts thrice). Of rows
 * of a `rolloutEvaluation` whose `score` is `scoreResponse`'s.
 */
export function ifevalMetrics<R extends Scored>({ rate, ratio }: MetricKit<R>): Record<string, Metric<R>> {
  const prompts = (reading: keyof IFEvalScores) =>
    rate(({ score }) => score && score[reading].every(Boolean), { higherIsBetter: true });
  const instructions = (reading: keyof IFEvalScores) =>
    ratio(({ score }) => score && [score[reading].filter(Boolean).length, score[reading].length], {
      higherIsBetter: true,
      unit: "share",
      range: [0, 1],
    });
  return {
    prompt_level_strict_acc: prompts("strict"),
    inst_level_strict_acc: instructions("strict"),
    prompt_level_loose_acc: prompts("loose"),
    inst_level_loose_acc: instructions("loose"),
  };
}
