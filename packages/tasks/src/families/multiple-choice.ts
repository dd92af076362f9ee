import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import { goldMetrics, indexOfHighest, predictChoice } from "@periodic-eval/core/evaluations";
import {
  choicesFamily,
  type ChoicesItem,
  type ChoicesOptions,
  type ChoicesRow,
  type Verdict,
} from "./choices.ts";
import type { Family } from "./family.ts";

/** `predicted` and `correct` by the sum; these by the sum over code points, and over bytes, of the choice. */
export interface MultipleChoiceVerdict extends Verdict {
  readonly predictedNorm: number | null;
  readonly correctNorm: boolean | null;
  readonly predictedBytes: number | null;
  readonly correctBytes: boolean | null;
}

export type MultipleChoiceRow = ChoicesRow & MultipleChoiceVerdict;

export interface MultipleChoiceOptions<D extends Row> extends ChoicesOptions<D> {
  /** Between prompt and choice; default a space. */
  readonly delimiter?: string;
  /** Also tells `acc_bytes`; default false. */
  readonly accBytes?: boolean;
  /** In place of `multipleChoiceMetrics`. */
  readonly metrics?: (
    kit: MetricKit<MultipleChoiceRow>,
  ) => Readonly<Record<string, Metric<MultipleChoiceRow>>>;
}

/**
 * Scores every choice as the continuation of the prompt, as lm-evaluation-harness 0.4.13 does where `output_type` is
 * `multiple_choice`: `acc` takes the highest Σ log p, `acc_norm` the highest Σ log p per code point of the choice,
 * `acc_bytes` per UTF-8 byte; the first of equals. It is right where that choice is one of those that are. A context that
 * does not fit is cut on the left, and counted (`truncated`).
 *
 *     multipleChoiceEvaluation({
 *       name: "capitals",
 *       documents: [{ id: "fr", question: "The capital of France is", choices: ["Paris", "Rome"], answer: 0 }],
 *       prompt: ({ question }) => question,
 *       choices: ({ choices }) => choices,
 *       gold: ({ answer }) => answer,
 *     });
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data` for a document without choices or right
 *   ones, `model` for a chat template that fails on every document.
 */
export function multipleChoiceEvaluation<D extends Row>(
  options: MultipleChoiceOptions<D>,
): Family<D, ChoicesItem<D>, MultipleChoiceRow, "logLikelihoods"> {
  const { delimiter = " ", accBytes = false } = options;
  const metrics = options.metrics ?? ((kit) => multipleChoiceMetrics(kit, { accBytes }));
  return choicesFamily<D, MultipleChoiceVerdict>({
    where: "multipleChoiceEvaluation",
    options,
    own: ["delimiter", "accBytes", "metrics"],
    delimiter,
    how: {},
    judge({ choices, gold }, scores) {
      if (scores === null) return unjudged;
      const { bySum, perCodePoint } = predictChoice(scores.nats, choices);
      const perByte = indexOfHighest(scores.nats.map((sum, at) => sum / utf8Length(choices[at]!)));
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
 * `acc` carries the verdict. The continuous companions see smaller drifts, because a question that is still answered right
 * may be answered with less certainty: `gold_log_prob` (log p of the right choices together), `gold_margin` (best right one
 * against best wrong one) and `gold_prob` (their probability among the choices).
 */
export function multipleChoiceMetrics(
  kit: MetricKit<MultipleChoiceRow>,
  { accBytes = false }: { readonly accBytes?: boolean } = {},
): Readonly<Record<string, Metric<MultipleChoiceRow>>> {
  const up = { higherIsBetter: true };
  return {
    acc: kit.rate(({ correct }) => correct, { ...up, primary: true }),
    acc_norm: kit.rate(({ correctNorm }) => correctNorm, up),
    ...(accBytes && { acc_bytes: kit.rate(({ correctBytes }) => correctBytes, up) }),
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

const utf8Length = (text: string): number => new TextEncoder().encode(text).length;
