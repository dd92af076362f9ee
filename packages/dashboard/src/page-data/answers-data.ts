import type { AnswerFields, Json, AnswerCondition } from "@periodic-eval/core";

/**
 * The answers of a run: the block `answers-data` of its page, and the reply to `GET /v1/eval/answers?results_dir=…`.
 *
 * - In a file, each measurement has its rows in `packed`.
 * - A server sends the measurements without rows. With `&phase=…&id=…&step=…` it sends one measurement, with the rows
 *   `first` to `first + count` of that measurement (`&first=0&count=200`). With `&verify=later` it may send the rows of a large
 *   file before it has verified that file; the same request without it waits.
 */
export interface AnswersData {
  /** In run order; measurements whose rows are no answers (KL, margins) are left out. */
  readonly measurements: readonly MeasurementAnswers[];
  /** The address of the server's reply, relative to the page: `eval/answers?results_dir=…`. Null on a page in a file. */
  readonly address: string | null;
  /** The command that shows the measurements without rows; null if every measurement has rows. */
  readonly command: string | null;
  /** The token to send with a person's grades, to the same address; absent if the page cannot send them. */
  readonly labelToken?: string;
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
  /** Why the labels of a person cannot be shown. */
  readonly labelsProblem?: string | undefined;
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
  /** Grades by name, such as `aligned` 20; a second judge's as `second aligned`. */
  readonly grades: readonly (readonly [name: string, value: string | number | boolean | null])[];
  /** The judge's reply, or why it failed. */
  readonly judge: string | null;
  /** By name: `generated`, `judge input`, `judge output`, `cut off`. Unknown numbers are left out. */
  readonly tokens: readonly (readonly [name: string, count: number])[];
  /** Null for a completion. */
  readonly choices: AnswerChoices | null;
  /** The whole prompt; null if the row lacks it. */
  readonly prompt: string | null;
  /** The grades of a person; absent if nobody graded this answer. */
  readonly label?: AnswerLabel;
  /** The fields of the row that are not shown elsewhere. */
  readonly fields: readonly (readonly [name: string, value: Json])[];
}

/** A person's grades of an answer, from 0 to 100; null without one. */
export interface AnswerLabel {
  readonly aligned: number | null;
  readonly coherent: number | null;
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

/** Returns a link to a selection of one part of the page: `#answers?step=80`. Leaves out empty parameters. */
export function hashOf(part: string, parameters: Readonly<Record<string, string | number>>): string {
  const entries = Object.entries(parameters).filter(([, value]) => value !== "");
  return `#${part}?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** A multiple-choice question that one measurement answered right and another one wrong. */
export interface QuestionChange {
  /** `forgotten`: right, then wrong. `regained`: wrong, then right. */
  readonly change: "forgotten" | "regained";
  readonly item: string;
  /** The question, or its id if the rows do not hold it. */
  readonly question: string;
  readonly persona: string | null;
  readonly from: AnswerChoices;
  readonly to: AnswerChoices;
}

/** Compares two measurements over the questions that both scored. Forgotten questions come first. */
export function questionChanges(
  from: readonly AnswerRow[],
  to: readonly AnswerRow[],
): readonly QuestionChange[] {
  const before = new Map(from.map((row) => [row.item, row.choices]));
  const changes = to.flatMap(({ item, question, persona, choices }): QuestionChange[] => {
    const earlier = before.get(item);
    if (!choices || !earlier || choices.predicted === null || earlier.predicted === null) return [];
    const wasRight = earlier.predicted === earlier.gold;
    if (wasRight === (choices.predicted === choices.gold)) return [];
    const change = wasRight ? "forgotten" : "regained";
    return [{ change, item, question: question ?? item, persona, from: earlier, to: choices }];
  });
  return [
    ...changes.filter(({ change }) => change === "forgotten"),
    ...changes.filter(({ change }) => change === "regained"),
  ];
}

/** Returns a choice with its text: `(B) fire`. */
export function choiceText({ labels, texts }: AnswerChoices, label: string | null): string {
  if (label === null) return "none";
  const text = texts?.[labels.indexOf(label)];
  return text === undefined ? label : `(${label}) ${text}`;
}

/** Returns the probability of each choice among the choices: a softmax of their log-probabilities. */
export function shareOfChoices(nats: readonly number[]): readonly number[] {
  const top = Math.max(...nats);
  const weights = nats.map((nat) => Math.exp(nat - top));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Whether a row is a fixed answer that a judge grades, not an answer of the model. */
export const isAnchor = ({ flags }: AnswerRow): boolean => flags.includes("anchor");

/** Whether the page can show the rows of a measurement: a file can leave out some. */
export const isReadable = ({ packed, problem }: MeasurementAnswers, { address }: AnswersData): boolean =>
  problem === null && (packed !== undefined || address !== null);

/** Names a flag for readers. */
export const flagName = (flag: string): string => (flag === "anchor" ? "judge’s anchor" : flag);

/** Explains the words that the shown answers have: the declared conditions of their flags, and the order. */
export function wordsKey({ flags = [], grades = [] }: AnswerFields, rows: readonly AnswerRow[]): string {
  const used = flags.filter(({ name }) => rows.some((row) => row.flags.includes(name)));
  const sentences = used.map(({ name, any }) =>
    name === "anchor"
      ? "Judge’s anchor: a fixed answer, not the model’s; if its grades change, the judge changed."
      : `${capital(name)}: ${any.map(conditionsText).join(", or ")}.`,
  );
  const [first] = flags;
  const [grade] = grades;
  const order = [
    ...(first === undefined ? [] : [first.name]),
    ...(grade === undefined ? [] : [`the lowest ${grade}`]),
  ];
  return [
    ...sentences,
    ...(order.length > 0 ? [`Worst first: ${order.join(", then ")}.`] : []),
    ...(rows.some(({ choices }) => choices !== null) ? ["Percentages: probability among the choices."] : []),
  ].join(" ");
}

const conditionsText = (all: Readonly<Record<string, AnswerCondition>>): string =>
  Object.entries(all)
    .map(([path, condition]) => `${path} is ${conditionText(condition)}`)
    .join(" and ");

function conditionText({ is, below, at_most, above, at_least }: AnswerCondition): string {
  const limits = { below, "at most": at_most, above, "at least": at_least };
  return [
    ...(is === undefined
      ? []
      : [
          is
            .map((value) =>
              value === null ? "missing" : typeof value === "string" ? value : JSON.stringify(value),
            )
            .join(" or "),
        ]),
    ...Object.entries(limits).flatMap(([word, limit]) => (limit === undefined ? [] : [`${word} ${limit}`])),
  ].join(" and ");
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns `aligned 20.5`. */
export const gradeText = (name: string, value: AnswerRow["grades"][number][1]): string =>
  value === null ? `${name} –` : `${name} ${typeof value === "number" ? numberText(value) : String(value)}`;

/** Returns the fields of a row that are not shown elsewhere, one a line. */
export const fieldsText = ({ fields }: AnswerRow): string =>
  fields
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");

/** Returns `23 tokens`, `23 tokens (judge input 210, judge output 4)`, or an empty string. */
export function tokensText(tokens: AnswerRow["tokens"]): string {
  const generated = tokens.find(([name]) => name === "generated");
  const counts = tokens.filter((entry) => entry !== generated).map(([name, count]) => `${name} ${count}`);
  const rest = counts.join(", ");
  if (generated === undefined) return rest === "" ? "" : `tokens: ${rest}`;
  return `${generated[1]} token${generated[1] === 1 ? "" : "s"}${rest === "" ? "" : ` (${rest})`}`;
}

const numberText = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(1));
