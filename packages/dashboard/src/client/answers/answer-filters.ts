import { fieldsText, isAnchor, type AnswerRow, shareOfChoices } from "../../page-data/answers-data.ts";
import type { AnswerFields } from "@periodic-eval/core";

/** Filters of the answers. An empty string allows every answer. */
export interface AnswerFilters {
  /** A flag. */
  readonly show: string;
  /** A persona's name; after a `!`, all other personas. */
  readonly persona: string;
  /** The whole question. */
  readonly question: string;
  /** Part of a question, answer, choice, persona, judge's reply, or other field; in any case. */
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
    (text === "" || textsOf(row).some((part) => part.toLowerCase().includes(text.toLowerCase())))
  );
}

const textsOf = (row: AnswerRow): readonly string[] => [
  questionOf(row),
  row.item,
  row.text ?? "",
  row.persona ?? "",
  row.judge ?? "",
  ...(row.choices?.texts ?? []),
  fieldsText(row),
];

/**
 * Sorts answers: those with the first declared flag first, then by grade or probability of the right choice, the lowest first.
 * Among equal first grades the highest second grade comes first: an incoherent answer says little.
 */
export function worstFirst(rows: readonly AnswerRow[], { flags = [] }: AnswerFields): readonly AnswerRow[] {
  const worst = flags[0]?.name;
  return rows
    .map((row) => {
      const isWorst = worst !== undefined && row.flags.includes(worst);
      return { row, rank: isWorst ? 0 : 1, grade: gradeOf(row), second: numberAt(row, 1) ?? -Infinity };
    })
    .toSorted((a, b) => a.rank - b.rank || compare(a.grade, b.grade) || compare(b.second, a.second))
    .map(({ row }) => row);
}

const compare = (a: number, b: number): number => (a === b ? 0 : a - b);

function numberAt({ grades }: AnswerRow, at: number): number | null {
  const value = grades[at]?.[1];
  return typeof value === "number" ? value : null;
}

/** Returns the first grade, or the probability of the right choice; infinity if it is unknown. */
function gradeOf(row: AnswerRow): number {
  const { choices } = row;
  const right = choices?.nats
    ? shareOfChoices(choices.nats)[choices.labels.indexOf(choices.gold)]
    : undefined;
  return numberAt(row, 0) ?? right ?? Infinity;
}
