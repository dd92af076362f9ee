import type { AnswerFlag, AnswerRow } from "../../page-data/answers-data.ts";
import { shareOfChoices } from "../../page-data/question-changes.ts";

/** Filters of the answers. An empty string allows every answer. */
export interface AnswerFilters {
  readonly show: AnswerFlag | "";
  readonly persona: string;
  /** The whole question. */
  readonly question: string;
  /** Part of a question, answer, choice, persona or judge's reply; in any case. */
  readonly text: string;
}

export const questionOf = ({ question, item }: AnswerRow): string => question ?? item;

export function matches(row: AnswerRow, { show, persona, question, text }: AnswerFilters): boolean {
  return (
    (show === "" || row.flags.includes(show)) &&
    (persona === "" || row.persona === persona) &&
    (question === "" || questionOf(row) === question) &&
    (text === "" || textsOf(row).some((one) => one.toLowerCase().includes(text.toLowerCase())))
  );
}

const textsOf = (row: AnswerRow): readonly string[] => [
  questionOf(row),
  row.item,
  row.text ?? "",
  row.persona ?? "",
  row.judge ?? "",
  ...(row.choices?.texts ?? []),
];

/** Sorts answers: misaligned ones, ones with the trait and wrong ones first, each by its grade or probability; ungraded ones last. */
export function worstFirst(rows: readonly AnswerRow[]): readonly AnswerRow[] {
  return rows
    .map((row) => ({ row, grade: gradeOf(row) }))
    .toSorted((a, b) => a.grade - b.grade)
    .map(({ row }) => row);
}

function gradeOf({ flags, grades, choices }: AnswerRow): number {
  const aligned = grades.find(([name]) => name === "aligned")?.[1];
  const right = choices?.nats
    ? shareOfChoices(choices.nats)[choices.labels.indexOf(choices.gold)]
    : undefined;
  const grade = typeof aligned === "number" ? aligned : right === undefined ? 1000 : 100 * right;
  const isBad = flags.some((flag) => flag === "misaligned" || flag === "trait" || flag === "wrong");
  return isBad ? Math.min(grade, 100) - 1000 : grade;
}
