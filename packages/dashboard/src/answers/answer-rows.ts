import type { Json } from "@periodic-eval/core";
import { isMisaligned } from "@periodic-eval/core/internal";
import type { AnswerChoices, AnswerFlag, AnswerRow } from "../page-data/answers-data.ts";
import { isMap, jsonField, ownValue } from "../html/json-field.ts";

type Fields = { readonly [key: string]: Json };

/**
 * Returns the answers of a stored row: none for a row without text and choices (KL, margins), one per completion for a task of a
 * benchmark. Reads every field as if it could be missing or of another type: rows come from any release and any evaluation.
 */
export function answerRows(row: Json): readonly AnswerRow[] {
  if (!isMap(row)) return [];
  const completions = ownValue(row, "completions");
  if (Array.isArray(completions))
    return completions.flatMap((completion: Json, sample) => {
      if (!isMap(completion)) return [];
      return answerOf({ ...row, ...completion, ...gradesAt(row, sample), sample }) ?? [];
    });
  const one = answerOf(row);
  return one === null ? [] : [one];
}

function answerOf(row: Fields): AnswerRow | null {
  const text = jsonField(row, "text");
  const choices = choicesOf(row);
  if (text === null && choices === null) return null;
  const id = ownValue(row, "id");
  const sample = numberField(row, "sample");
  return {
    item: jsonField(row, "item") ?? (typeof id === "number" ? String(id) : (jsonField(row, "id") ?? "")),
    sample: sample ?? 0,
    question: jsonField(row, "question") ?? promptText(ownValue(row, "prompt")),
    persona: jsonField(row, "persona"),
    text,
    flags: flagsOf(row),
    grades: gradesOf(row),
    judge: jsonField(row, "raw") ?? jsonField(row, "reason"),
    tokens: tokensOf(row),
    choices,
  };
}

/** Returns the grades of one completion of a benchmark's task. */
function gradesAt(row: Fields, at: number): Fields {
  const one = (key: string): Json => {
    const list = ownValue(row, key);
    return Array.isArray(list) ? ((list[at] as Json | undefined) ?? null) : null;
  };
  const verdict = one("verdicts");
  return { reward: one("rewards"), correct: one("passed"), ...(isMap(verdict) && verdict) };
}

/** Returns the last message of a chat. */
function promptText(prompt: Json | undefined): string | null {
  const last = Array.isArray(prompt) ? (prompt.at(-1) as Json | undefined) : undefined;
  return jsonField(last, "content");
}

function flagsOf(row: Fields): readonly AnswerFlag[] {
  if (ownValue(row, "kind") === "anchor") return ["anchor"];
  const is: Readonly<Record<Exclude<AnswerFlag, "anchor">, boolean>> = {
    wrong: ownValue(row, "correct") === false,
    misaligned:
      isMisaligned({ aligned: numberField(row, "aligned"), coherent: numberField(row, "coherent") }) === true,
    trait: ownValue(row, "hit") === true,
    ungraded: isUngraded(row),
    truncated:
      ownValue(row, "finish") === "length" ||
      ownValue(row, "status") === "unfinished" ||
      (numberField(row, "truncatedTokens") ?? 0) > 0,
  };
  return (Object.keys(is) as (keyof typeof is)[]).filter((flag) => is[flag]);
}

const ungradedStates: readonly (Json | undefined)[] = [
  "error",
  "unparsed",
  "cut",
  "template_failure",
  "label_collision",
  "overflow",
];

/** Rows of an interrupted grading have no `status` yet. */
const isUngraded = (row: Fields): boolean =>
  ungradedStates.includes(ownValue(row, "status")) ||
  jsonField(ownValue(row, "statuses"), "coherent") === "unparsed" ||
  ownValue(row, "hit") === null ||
  (ownValue(row, "correct") === null && ownValue(row, "status") !== "unfinished") ||
  (ownValue(row, "kind") === "completion" && ownValue(row, "status") === undefined);

/** States that most answers have, or that a flag says. */
const usualStates = ["graded", "generated", "scored", "unfinished"];
const gradeNames = ["aligned", "coherent", "hit", "score", "reward", "status"] as const;

function gradesOf(row: Fields): AnswerRow["grades"] {
  return gradeNames.flatMap((name) => {
    const value = ownValue(row, name);
    if (value === undefined || (typeof value === "object" && value !== null)) return [];
    if (name === "status" && usualStates.includes(String(value))) return [];
    return [[name, value] as const];
  });
}

function tokensOf(row: Fields): AnswerRow["tokens"] {
  const spent = ownValue(row, "judgeSpent");
  const generated = numberField(row, "tokens") ?? numberField(row, "outputTokens");
  const counts: readonly (readonly [string, number | null])[] = [
    ["generated", generated],
    ["judge input", isMap(spent) ? numberField(spent, "inputTokens") : null],
    ["judge output", isMap(spent) ? numberField(spent, "outputTokens") : null],
    ["cut off", numberField(row, "truncatedTokens") || null],
  ];
  return counts.flatMap(([name, count]) => (count === null ? [] : [[name, count] as const]));
}

/** Returns the choices of a row of `letters`, `cloze`, or a benchmark's multiple-choice task, which names choices by index. */
function choicesOf(row: Fields): AnswerChoices | null {
  const gold = ownValue(row, "gold");
  const nats = listOf(row, "nats", (one): one is number => typeof one === "number");
  const texts = listOf(row, "choices", isString);
  const labels =
    listOf(row, "labels", isString) ?? (Array.isArray(gold) ? nats?.map((_, at) => letterOf(at)) : null);
  if (labels == null || gold === undefined) return null;
  const predicted = labelOf(ownValue(row, "predicted"));
  const right = labelOf(Array.isArray(gold) ? (gold[0] as Json) : gold);
  const isFull = <T>(list: readonly T[] | null): readonly T[] | null =>
    list?.length === labels.length ? list : null;
  return { labels, texts: isFull(texts), nats: isFull(nats), gold: right ?? "", predicted };
}

const letterOf = (at: number): string => (at < 26 ? String.fromCharCode(65 + at) : String(at + 1));
const labelOf = (value: Json | undefined): string | null =>
  typeof value === "number" ? letterOf(value) : typeof value === "string" ? value : null;

const isString = (one: Json): one is string => typeof one === "string";

function listOf<T extends Json>(row: Fields, key: string, is: (one: Json) => one is T): readonly T[] | null {
  const list = ownValue(row, key);
  return Array.isArray(list) && list.every(is) ? list : null;
}

function numberField(row: Fields, key: string): number | null {
  const value = ownValue(row, key);
  return typeof value === "number" ? value : null;
}
