import type { Row } from "@periodic-eval/core";
import * as z from "zod";
import { indexOfHighest } from "@periodic-eval/core/evaluations";
import {
  choicesFamily,
  type ChoicesItem,
  type ChoicesOptions,
  type ChoicesRow,
  type ChoiceVerdict,
} from "./choices.ts";
import type { Family } from "./family.ts";

export interface PerplexityComparisonOptions<D extends Row> extends ChoicesOptions<D> {
  /** The string between prompt and choice; default empty. */
  readonly delimiter?: string;
  /** `mean` (default) predicts the choice with the lowest perplexity, `sum` the one with the highest probability. */
  readonly compare?: "mean" | "sum";
}

export type PerplexityComparisonRow = ChoicesRow & ChoiceVerdict;

/**
 * Predicts the continuation of a prompt with the lowest negative log-likelihood, per token or in sum, over all tokens of the
 * continuation, the first included. Ties go to the first. `accuracy` is the share of documents whose prediction is right.
 *
 * @throws as `multipleChoiceEvaluation`.
 */
export function perplexityComparisonEvaluation<D extends Row>(
  options: PerplexityComparisonOptions<D>,
): Family<D, ChoicesItem<D>, PerplexityComparisonRow, "logLikelihoods"> {
  const { delimiter = "", compare = "mean" } = options;

  return choicesFamily<D, ChoiceVerdict>({
    where: "perplexityComparisonEvaluation",
    options,
    ownShape: { delimiter: z.string().optional(), compare: z.enum(["mean", "sum"]).optional() },
    delimiter,
    how: { compare },
    judge({ gold }, scores) {
      if (scores === null) return { predicted: null, correct: null };
      const { nats, tokens } = scores;
      const predicted = indexOfHighest(compare === "sum" ? nats : nats.map((sum, at) => sum / tokens[at]!));
      return { predicted, correct: gold.includes(predicted) };
    },
    metrics: ({ rate }) => ({ accuracy: rate(({ correct }) => correct, { higherIsBetter: true }) }),
  });
}
