import { isAnchor } from "../../page-data/answer-text.ts";
import type { AnswerFlag, AnswerRow } from "../../page-data/answers-data.ts";
import { shareOfChoices } from "../../page-data/question-changes.ts";

/** Filters of the answers. An empty string allows every answer. */
export interface AnswerFilters {
  readonly show: AnswerFlag | "";
  /** A persona's name; after a `!`, all other personas. */
  readonly persona: string;
  /** The whole question. */
  readonly question: string;
  /** Part of a question, answer, choice, persona or judge's reply; in any case. */
  readonly text: string;
}

/** Returns the answers of the model; the judge's anchors if these are selected. */
export const shownKind = (rows: readonly AnswerRow[], show: AnswerFilters["show"]): readonly AnswerRow[] =>
  rows.filter((row) => isAnchor(row) === (show === "anchor"));

/** Whether an answer is of the selected persona. */
const isOfPersona = (persona: string | null, selected: string): boolean =>
  selected === "" || (selected.startsWith("!") ? persona !== selected.slice(1) : persona === selected);

export const questionOf = ({ question, item }: AnswerRow): string => question ?? item;

export function matches(row: AnswerRow, { show, persona, question, text }: AnswerFilters): boolean {
  return (
    (show === "" || row.flags.includes(show)) &&
    isOfPersona(row.persona, persona) &&
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

/**
 * Sorts answers: misaligned ones, ones with the trait and wrong ones first, each by its grade or probability; ungraded ones last.
 * Among equal alignments, the highest coherence comes first: an incoherent answer says little.
 */
export function worstFirst(rows: readonly AnswerRow[]): readonly AnswerRow[] {
  return rows
    .map((row) => ({ row, grade: gradeOf(row), coherence: scoreOf(row, "coherent") ?? -1 }))
    .toSorted((a, b) => a.grade - b.grade || b.coherence - a.coherence)
    .map(({ row }) => row);
}

function scoreOf({ grades }: AnswerRow, score: "aligned" | "coherent"): number | null {
  const value = grades.find(([name]) => name === score)?.[1];
  return typeof value === "number" ? value : null;
}

function gradeOf(row: AnswerRow): number {
  const { flags, choices } = row;
  const aligned = scoreOf(row, "aligned");
  const right = choices?.nats
    ? shareOfChoices(choices.nats)[choices.labels.indexOf(choices.gold)]
    : undefined;
  const grade = aligned ?? (right === undefined ? 1000 : 100 * right);
  const isBad = flags.some((flag) => flag === "misaligned" || flag === "trait" || flag === "wrong");
  return isBad ? Math.min(grade, 100) - 1000 : grade;
}
