import type { AnswerFields, Json } from "@periodic-eval/core";

/**
 * The answers of a run: the block `answers-data` of its page, and the reply to `GET /v1/eval?results_dir=…&view=answers`.
 *
 * - In a file, each measurement has its rows in `packed`.
 * - A server sends the measurements without rows. With `&phase=…&id=…&step=…` it sends one measurement, with the rows
 *   `first` to `first + count` of that measurement (`&first=0&count=200`). With `&verify=later` it may send the rows of a large
 *   file before it has verified that file; the same request without it waits.
 */
export interface AnswersData {
  /** In run order; measurements whose rows are no answers (KL, margins) are left out. */
  readonly measurements: readonly MeasurementAnswers[];
  /** The address of the server's reply, relative to the page: `?results_dir=…&view=answers`. Null on a page in a file. */
  readonly address: string | null;
  /** The command that shows the measurements without rows; null if every measurement has rows. */
  readonly command: string | null;
}

/** The answers of one measurement. */
export interface MeasurementAnswers {
  readonly phase: string;
  /** The callback's id. */
  readonly id: string;
  readonly evaluation: string;
  /** The fields of the rows that the evaluation declared. */
  readonly declared: AnswerFields;
  /** The first item's prompt; null if it is unknown. */
  readonly example: string | null;
  readonly step: number;
  readonly runStep: number;
  /** Number of rows of the measurement. */
  readonly total: number;
  /** 0-based position of the first of `rows`. */
  readonly first: number;
  /** Rows of the measurement in their stored order; null if they are in `packed`, on the server, or left out. */
  readonly rows: readonly AnswerRow[] | null;
  /** All rows: JSON of `AnswerRow[]`, gzip, base64. */
  readonly packed?: string;
  /** False if the server has not verified the rows yet. */
  readonly isVerified?: false;
  /** Why the rows cannot be shown; null if they can. */
  readonly problem: string | null;
}

/** One answer, from a row of any evaluation. `answerRow` makes it. */
export interface AnswerRow {
  /** Names the question (and persona) in all measurements of the callback. */
  readonly item: string;
  /** Counts the answers to one item, from 0. */
  readonly sample: number;
  readonly question: string | null;
  readonly persona: string | null;
  /** The completion; null for a multiple-choice question. */
  readonly text: string | null;
  /** Words that a reader can filter by. An `anchor` is no answer of the model: only its own filter shows it. */
  readonly flags: readonly string[];
  /** Grades by name, such as `aligned` 20. */
  readonly grades: readonly (readonly [name: string, value: string | number | boolean | null])[];
  /** The judge's reply, or why it failed. */
  readonly judge: string | null;
  /** By name: `generated`, `judge input`, `judge output`, `cut off`. Unknown numbers are left out. */
  readonly tokens: readonly (readonly [name: string, count: number])[];
  /** Null for a completion. */
  readonly choices: AnswerChoices | null;
  /** The whole prompt; null if the row lacks it. */
  readonly prompt: string | null;
  /** The fields of the row that are not shown elsewhere. */
  readonly fields: readonly (readonly [name: string, value: Json])[];
}

/** The choices of a multiple-choice question. */
export interface AnswerChoices {
  readonly labels: readonly string[];
  /** One string per label; null in rows of earlier releases. */
  readonly texts: readonly string[] | null;
  /** log p of each choice; null if not scored. */
  readonly nats: readonly number[] | null;
  /** The right label. */
  readonly gold: string;
  /** The model's label; null if not scored. */
  readonly predicted: string | null;
}
