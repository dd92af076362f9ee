import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import type { IFEvalScores } from "./score.ts";

/** A row with scores; null if its prompt was skipped. Such rows count in no metric. */
interface Scored extends Row {
  readonly score: IFEvalScores | null;
}

/**
 * Returns the four metrics of IFEval with their names in lm-evaluation-harness: the share of prompts whose instructions are all
 * followed, and the share of all instructions that are followed. They read rows of a `rolloutEvaluation` whose `score` is
 * `scoreResponse`.
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
