import type { Row } from "@periodic-eval/core";
import { checkWord } from "@periodic-eval/core/internal";
import { indexOfHighest } from "@periodic-eval/core/evaluations";
import {
  choicesFamily,
  type ChoicesItem,
  type ChoicesOptions,
  type ChoicesRow,
  type Verdict,
} from "./choices.ts";
import type { Family } from "./family.ts";

export interface PerplexityComparisonOptions<D extends Row> extends ChoicesOptions<D> {
  /** Between prompt and choice; default nothing. */
  readonly delimiter?: string;
  /** `mean` (default): the choice of the lowest perplexity; `sum`: of the highest probability. */
  readonly compare?: "mean" | "sum";
}

export type PerplexityComparisonRow = ChoicesRow & Verdict;

/**
 * Which continuation of a prompt the model finds least surprising: the lowest negative log-likelihood per token, or in
 * sum, over all tokens of the continuation, the first included; the first of equals. `accuracy` is the share of documents
 * whose right choice that is.
 *
 * @throws as `multipleChoiceEvaluation`.
 */
export function perplexityComparisonEvaluation<D extends Row>(
  options: PerplexityComparisonOptions<D>,
): Family<D, ChoicesItem<D>, PerplexityComparisonRow, "logLikelihoods"> {
  const { delimiter = "", compare = "mean" } = options;
  checkWord("perplexityComparisonEvaluation.compare", compare, ["mean", "sum"]);
  return choicesFamily<D, Verdict>({
    where: "perplexityComparisonEvaluation",
    options,
    own: ["delimiter", "compare"],
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
