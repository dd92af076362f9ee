import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import {
  firstHighest,
  perCodePoint,
  rightLogProb,
  rightMargin,
  rightProb,
} from "@periodic-eval/core/evaluations";
import { z } from "zod";
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
  /** Adds the metric `acc_bytes`; default false. */
  readonly accBytes?: boolean;
  /** Replaces `multipleChoiceMetrics`. */
  readonly metrics?: (
    kit: MetricKit<MultipleChoiceRow>,
  ) => Readonly<Record<string, Metric<MultipleChoiceRow>>>;
}

/**
 * Scores every choice as a continuation of the prompt, as lm-evaluation-harness 0.4.13 does for `output_type:
 * multiple_choice`. `acc` predicts the choice with the highest Σ log p, `acc_norm` with the highest Σ log p per code point of the
 * choice, `acc_bytes` per UTF-8 byte; ties go to the first. A context that does not fit is cut on the left and counted
 * (`truncated`).
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
  const { delimiter = " ", accBytes = false } = options;
  const metrics = options.metrics ?? ((kit) => multipleChoiceMetrics(kit, { accBytes }));
  return choicesFamily<D, MultipleChoiceVerdict>({
    where: "multipleChoiceEvaluation",
    options,
    ownShape: {
      delimiter: z.string().optional(),
      accBytes: z.boolean("true or false").optional(),
      metrics: z.custom((value) => typeof value === "function", "a function of a metric kit").optional(),
    },
    delimiter,
    how: {},
    judge({ choices, gold }, scores) {
      if (scores === null) return unjudged;
      const best = (values: readonly number[]) => {
        const at = firstHighest(values);
        return [at, gold.includes(at)] as const;
      };
      const [predicted, correct] = best(scores.nats);
      const [predictedNorm, correctNorm] = best(perCodePoint(scores.nats, choices));
      const [predictedBytes, correctBytes] = best(
        scores.nats.map((sum, at) => sum / utf8Length(choices[at]!)),
      );
      return { predicted, correct, predictedNorm, correctNorm, predictedBytes, correctBytes };
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
  { rate, mean }: MetricKit<MultipleChoiceRow>,
  { accBytes = false }: { readonly accBytes?: boolean } = {},
): Readonly<Record<string, Metric<MultipleChoiceRow>>> {
  const up = { higherIsBetter: true };
  const ofGold =
    (value: (nats: readonly number[], gold: readonly number[]) => number | null) =>
    ({ nats, gold }: MultipleChoiceRow) =>
      nats === null ? null : value(nats, gold);
  return {
    acc: rate(({ correct }) => correct, { ...up, primary: true }),
    acc_norm: rate(({ correctNorm }) => correctNorm, up),
    ...(accBytes && { acc_bytes: rate(({ correctBytes }) => correctBytes, up) }),
    gold_log_prob: mean(ofGold(rightLogProb), { ...up, unit: "nats", range: [-Infinity, 0] }),
    gold_margin: mean(ofGold(rightMargin), { ...up, unit: "nats" }),
    gold_prob: mean(ofGold(rightProb), { ...up, unit: "probability", range: [0, 1] }),
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

const utf8Length = (text: string): number => new TextEncoder().encode(text).length;
