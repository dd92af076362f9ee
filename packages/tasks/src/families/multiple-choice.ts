import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import { functionSchema } from "@periodic-eval/contracts/options";
import { goldMetrics, indexOfHighest, predictChoice } from "@periodic-eval/core/evaluations";
import { byteLength } from "@periodic-eval/store/platform";
import * as z from "zod";
import {
  choicesFamily,
  type ChoicesItem,
  type ChoicesOptions,
  type ChoicesRow,
  type ChoiceVerdict,
} from "./choices.ts";
import type { Family } from "./family.ts";

/** `predicted` and `correct` use Σ log p; the others divide it by the code points, or by the bytes, of the choice. */
export interface MultipleChoiceVerdict extends ChoiceVerdict {
  readonly predictedNorm: number | null;
  readonly correctNorm: boolean | null;
  readonly predictedBytes: number | null;
  readonly correctBytes: boolean | null;
}

export type MultipleChoiceRow = ChoicesRow & MultipleChoiceVerdict;

export interface MultipleChoiceOptions<D extends Row> extends ChoicesOptions<D> {
  /** The string between prompt and choice; default a space. */
  readonly delimiter?: string;
  /** Replaces `multipleChoiceMetrics`. */
  readonly metrics?: (
    kit: MetricKit<MultipleChoiceRow>,
  ) => Readonly<Record<string, Metric<MultipleChoiceRow>>>;
}

/**
 * Scores every choice as a continuation of the prompt, as lm-evaluation-harness 0.4.13 does for `output_type:
 * multiple_choice`. `acc` predicts the choice with the highest Σ log p, `acc_norm` with the highest Σ log p per code point of the
 * choice; ties go to the first. A context that does not fit is cut on the left and counted (`truncated`). Rows also have the
 * prediction per UTF-8 byte.
 *
 *     multipleChoiceEvaluation({
 *       name: "capitals",
 *       documents: [{ id: "fr", question: "The capital of France is", choices: ["Paris", "Rome"], answer: 0 }],
 *       prompt: ({ question }) => question,
 *       choices: ({ choices }) => choices,
 *       gold: ({ answer }) => answer,
 *     });
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data` for a document without choices or without right
 *   choices, and `model` for a chat template that fails on every document.
 */
export function multipleChoiceEvaluation<D extends Row>(
  options: MultipleChoiceOptions<D>,
): Family<D, ChoicesItem<D>, MultipleChoiceRow, "logLikelihoods"> {
  const { delimiter = " ", metrics = multipleChoiceMetrics } = options;
  return choicesFamily<D, MultipleChoiceVerdict>({
    where: "multipleChoiceEvaluation",
    options,
    ownShape: {
      delimiter: z.string().optional(),
      metrics: functionSchema("a function of a metric kit").optional(),
    },
    delimiter,
    how: {},
    judge({ choices, gold }, scores) {
      if (scores === null) return unjudged;
      const { bySum, perCodePoint } = predictChoice(scores.nats, choices);
      const perByte = indexOfHighest(scores.nats.map((sum, at) => sum / byteLength(choices[at]!)));
      return {
        predicted: bySum,
        correct: gold.includes(bySum),
        predictedNorm: perCodePoint,
        correctNorm: gold.includes(perCodePoint),
        predictedBytes: perByte,
        correctBytes: gold.includes(perByte),
      };
    },
    metrics,
  });
}

/**
 * Returns the default metrics. `acc` is primary. The continuous metrics detect smaller drifts, because certainty may fall
 * while answers stay right: `gold_log_prob` (log p of all right choices together), `gold_margin` (best right choice minus best
 * wrong choice) and `gold_prob` (probability of the right choices among all choices).
 */
export function multipleChoiceMetrics(
  kit: MetricKit<MultipleChoiceRow>,
): Readonly<Record<string, Metric<MultipleChoiceRow>>> {
  const up = { higherIsBetter: true };
  return {
    acc: kit.rate(({ correct }) => correct, { ...up, primary: true }),
    acc_norm: kit.rate(({ correctNorm }) => correctNorm, up),
    ...goldMetrics(kit, ({ nats, gold }) => (nats === null ? null : { nats, gold })),
  };
}

const unjudged: MultipleChoiceVerdict = {
  predicted: null,
  correct: null,
  predictedNorm: null,
  correctNorm: null,
  predictedBytes: null,
  correctBytes: null,
};
