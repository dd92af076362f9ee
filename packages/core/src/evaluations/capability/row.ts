import type { Metric, MetricKit, MetricOptions, Row } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import type { MetricValue } from "../../contracts/snapshot.ts";
import type { ArcQuestion } from "./arc-questions.ts";
import { checkLogProbs, indexOfHighest, goldLogProb, goldMargin, goldProb } from "./choice-scores.ts";

/** The result of one multiple-choice question. */
export interface ChoiceRow extends Row {
  /** `template_failure`: the chat could not be rendered. `label_collision`: labels share a first token, or one has none. Neither is scored. */
  readonly status: "scored" | "template_failure" | "label_collision";
  readonly labels: readonly string[];
  readonly gold: string;
  /** The label with the highest log-probability, the first of equals; null where not scored. */
  readonly predicted: string | null;
  readonly correct: boolean | null;
  /** log p of each choice, in the order of the labels; null where not scored. */
  readonly nats: readonly number[] | null;
  /** Tokens cut on the left to fit the model. */
  readonly truncatedTokens: number;
  /** Who was asked; left out where nobody in particular was. */
  readonly persona?: string;
  /** Why it was not scored. */
  readonly reason?: string;
}

/** A row for a question that could not be asked. */
export function unscored(item: ArcQuestion, status: ChoiceRow["status"], reason: string): ChoiceRow {
  const { id, labels, gold } = item;
  return { id, status, labels, gold, predicted: null, correct: null, nats: null, truncatedTokens: 0, reason };
}

/** A row from the log-probability of each choice. Throws a `model` error where one is not a finite number. */
export function scored(item: ArcQuestion, nats: readonly number[], truncatedTokens: number): ChoiceRow {
  const { id, labels, gold } = item;
  checkLogProbs(id, nats, labels.length);
  const predicted = labels[indexOfHighest(nats)]!;
  return {
    id,
    status: "scored",
    labels,
    gold,
    predicted,
    correct: predicted === gold,
    nats,
    truncatedTokens,
  };
}

/** Of the row's log-probabilities and the index of the right choice; null where it was not scored. */
const ofGold =
  (value: (nats: readonly number[], gold: readonly number[]) => number | null) =>
  ({ nats, labels, gold }: ChoiceRow): number | null =>
    nats === null ? null : value(nats, [labels.indexOf(gold)]);

/**
 * What a multiple-choice look reports. Accuracy carries the verdict; the continuous companions see smaller drifts,
 * because a question that is still answered right may be answered with less certainty.
 */
export function choiceMetrics<R extends ChoiceRow>(
  { rate, mean }: MetricKit<R>,
  grouping: Pick<MetricOptions<R>, "by" | "cluster"> = {},
) {
  const better = { higherIsBetter: true, ...grouping };
  const nats = { ...better, unit: "nats" };
  return {
    accuracy: rate((row) => row.correct, { ...better, primary: true }),
    gold_log_prob: mean(ofGold(goldLogProb), { ...nats, range: [-Infinity, 0] }),
    gold_margin: mean(ofGold(goldMargin), nats),
    gold_prob: mean(ofGold(goldProb), { ...better, unit: "probability", range: [0, 1] }),
  } satisfies Record<string, Metric<R>>;
}

/** Keys at the snapshot's top level: `total` counts the scored questions. */
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
    truncated: count((row) => row.truncatedTokens > 0),
  };
}
