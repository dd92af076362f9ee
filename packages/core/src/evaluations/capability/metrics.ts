import type {
  AnswerFields,
  Metric,
  MetricKit,
  MetricOptions,
  Row,
  Json,
  MetricValue,
} from "@periodic-eval/contracts";
import type { ArcQuestion } from "@periodic-eval/data";
import { goldLogProb, goldMargin, goldProb, truncatedRows, type ChoiceScores } from "./choice-scores.ts";

/** The scores of one question and the indices of its right choices. */
export interface GoldScores {
  readonly nats: readonly number[];
  readonly gold: readonly number[];
}

/**
 * Continuous companions of accuracy: `gold_log_prob` (log p of the right choices together), `gold_margin` (best right choice
 * against best wrong one) and `gold_prob` (probability of the right choices among all). They detect smaller drifts, because
 * the model can answer a question right with less certainty than before.
 *
 * @param scoresOf Returns null for a row that was not scored.
 */
export function goldMetrics<R extends Row>(
  { mean }: MetricKit<R>,
  scoresOf: (row: R) => GoldScores | null,
  grouping: Pick<MetricOptions<R>, "by" | "cluster"> = {},
) {
  const options = { higherIsBetter: true, ...grouping };
  const meanOf = (
    value: (nats: readonly number[], gold: readonly number[]) => number | null,
    more: MetricOptions<R>,
  ) =>
    mean(
      (row) => {
        const scores = scoresOf(row);
        return scores === null ? null : value(scores.nats, scores.gold);
      },
      { ...options, ...more },
    );
  return {
    gold_log_prob: meanOf(goldLogProb, { unit: "nats", range: [-Infinity, 0] }),
    gold_margin: meanOf(goldMargin, { unit: "nats" }),
    gold_prob: meanOf(goldProb, { unit: "probability", range: [0, 1] }),
  } satisfies Record<string, Metric<R>>;
}

/** The metrics of multiple-choice questions. Accuracy carries the verdict. */
export function choiceMetrics<R extends ChoiceRow>(
  kit: MetricKit<R>,
  grouping: Pick<MetricOptions<R>, "by" | "cluster"> = {},
) {
  const scoresOf = ({ nats, labels, gold }: ChoiceRow) =>
    nats === null ? null : { nats, gold: [labels.indexOf(gold)] };
  return {
    accuracy: kit.rate((row) => row.correct, { higherIsBetter: true, ...grouping, primary: true }),
    ...goldMetrics(kit, scoresOf, grouping),
  } satisfies Record<string, Metric<R>>;
}

/** The fields of a `ChoiceRow`. */
export const choiceFields = {
  question: "question",
  prompt: "prompt",
  persona: "persona",
  reply: "reason",
  choices: { labels: "labels", texts: "choices", nats: "nats", gold: "gold", predicted: "predicted" },
  flags: [
    { name: "wrong", any: [{ correct: { is: [false] } }] },
    { name: "ungraded", any: [{ status: { is: ["template_failure", "label_collision"] } }] },
    { name: "truncated", any: [{ truncatedTokens: { above: 0 } }] },
  ],
  tokens: { "cut off": "truncatedTokens" },
} satisfies AnswerFields;

/** Keys at the snapshot's top level. `total` counts the scored questions. */
export function choicePlainKeys(
  metrics: Readonly<Record<string, MetricValue>>,
  rows: readonly ChoiceRow[],
): Readonly<Record<string, Json>> {
  const count = (is: (row: ChoiceRow) => boolean) => rows.filter(is).length;
  return {
    accuracy: metrics["accuracy"]?.value ?? null,
    correct: count((row) => row.correct === true),
    total: count((row) => row.status === "scored"),
    template_failures: count((row) => row.status === "template_failure"),
    label_collisions: count((row) => row.status === "label_collision"),
    truncated: truncatedRows(rows),
  };
}

/** The result of one multiple-choice question. */
export interface ChoiceRow extends Row {
  /**
   * `template_failure`: the chat template failed. `label_collision`: two labels share a first token, or a label has no token.
   * Neither is scored.
   */
  readonly status: "scored" | "template_failure" | "label_collision";
  /** Absent in rows of earlier releases, as are `choices`. */
  readonly question?: string;
  readonly labels: readonly string[];
  /** One string per label. */
  readonly choices?: readonly string[];
  readonly gold: string;
  /** The label with the highest log-probability, the first of equal ones; null if not scored. */
  readonly predicted: string | null;
  readonly correct: boolean | null;
  /** log p of each choice, in the order of the labels; null if not scored. */
  readonly nats: readonly number[] | null;
  /** Tokens cut on the left to fit the model; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
  /** The whole prompt; absent if it has few-shot examples or the template failed. */
  readonly prompt?: string | null;
  /** Id of the persona; absent without personas. */
  readonly persona?: string;
  /** Why the question was not scored. */
  readonly reason?: string;
}

export function unscored(item: ArcQuestion, status: ChoiceRow["status"], reason: string): ChoiceRow {
  const unknown = { predicted: null, correct: null, nats: null };
  return { ...asked(item, status), ...unknown, truncatedTokens: 0, reason };
}

/** @param at Index of the chosen label. */
export function scored(
  item: ArcQuestion,
  at: number,
  { nats, truncatedTokens }: Pick<ChoiceScores, "nats" | "truncatedTokens">,
): ChoiceRow {
  const predicted = item.labels[at]!;
  const correct = predicted === item.gold;
  return { ...asked(item, "scored"), predicted, correct, nats, truncatedTokens };
}

/** Returns the fields of a row that come from its question. They make a file of rows readable without the question file. */
function asked({ id, question, labels, choices, gold }: ArcQuestion, status: ChoiceRow["status"]) {
  return { id, status, question, labels, choices, gold };
}
