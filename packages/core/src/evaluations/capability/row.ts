import type { Row } from "../../contracts/evaluation.ts";
import type { ArcQuestion } from "./arc-questions.ts";

/** The result of one multiple-choice question. */
export interface ChoiceRow extends Row {
  /**
   * `template_failure`: the chat template failed. `label_collision`: two labels share a first token, or a label has no token.
   * Neither is scored.
   */
  readonly status: "scored" | "template_failure" | "label_collision";
  readonly labels: readonly string[];
  readonly gold: string;
  /** The label with the highest log-probability, the first of equal ones; null if not scored. */
  readonly predicted: string | null;
  readonly correct: boolean | null;
  /** log p of each choice, in the order of the labels; null if not scored. */
  readonly nats: readonly number[] | null;
  /** Tokens cut on the left to fit the model. */
  readonly truncatedTokens: number;
  /** Id of the persona; absent without personas. */
  readonly persona?: string;
  /** Why the question was not scored. */
  readonly reason?: string;
}

/** Returns the row of a question that could not be scored. */
export function unscored(item: ArcQuestion, status: ChoiceRow["status"], reason: string): ChoiceRow {
  const { id, labels, gold } = item;
  return { id, status, labels, gold, predicted: null, correct: null, nats: null, truncatedTokens: 0, reason };
}

export interface ScoredChoice {
  /** Index of the chosen label. */
  readonly predicted: number;
  readonly nats: readonly number[];
  readonly truncatedTokens: number;
}

/** Returns the row of a scored question. */
export function scored(
  { id, labels, gold }: ArcQuestion,
  { predicted: at, nats, truncatedTokens }: ScoredChoice,
): ChoiceRow {
  const predicted = labels[at]!;
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
