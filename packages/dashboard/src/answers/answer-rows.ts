import type { AnswerFields, Json, AnswerCondition } from "@periodic-eval/core";
import { isMap, jsonField, ownValue } from "../html/format.ts";
import type { AnswerChoices, AnswerRow } from "../page-data/answers-data.ts";

/** Returns the value of a declared field for the answer that is read; undefined if it is not declared or missing. */
type Read = (path: string | undefined) => Json | undefined;

/**
 * Returns the answers of a stored row, with the fields that its evaluation declared: one answer, or one per element of the list that
 * `answer` leads to. Reads every field as if it could be missing or of another type.
 */
export function answerRows(row: Json, fields: AnswerFields = {}): readonly AnswerRow[] {
  if (!isMap(row)) return [];
  const texts = fields.answer === undefined ? undefined : valueAt(row, fields.answer);
  if (!Array.isArray(texts)) {
    const [item, sample] = itemOf(jsonText(valueAt(row, "id")) ?? "");
    return [answerOf(row, fields, { item, sample, read: (path) => path && valueAt(row, path) })];
  }
  return texts.map((_, sample) => {
    const read: Read = (path) => {
      const value = path === undefined ? undefined : valueAt(row, path);
      const isPerAnswer = Array.isArray(value) && value.length === texts.length;
      return isPerAnswer && path !== fields.question ? (value[sample] as Json) : value;
    };
    return answerOf(row, fields, { item: jsonText(valueAt(row, "id")) ?? "", sample, read });
  });
}

/** Splits a row's id into its item and the number of its sample: `q1#2`. */
function itemOf(id: string): readonly [item: string, sample: number] {
  const match = /^(.+)#(\d{1,9})$/s.exec(id);
  return match === null ? [id, 0] : [match[1]!, Number(match[2])];
}

function answerOf(
  row: Json,
  fields: AnswerFields,
  { item, sample, read }: { readonly item: string; readonly sample: number; readonly read: Read },
): AnswerRow {
  const { grades = [] } = fields;
  const text = textOf(read(fields.answer));
  return {
    item,
    sample,
    question: lastText(read(fields.question)),
    persona: textOf(read(fields.persona)),
    text,
    flags: flagsOf(fields, read),
    grades: grades.flatMap((path, at) => {
      const value = read(path);
      const isShown = value === null || typeof value === "string" || typeof value === "number";
      const isFirst = grades.findIndex((other) => lastName(other) === lastName(path)) === at;
      return isShown ? [[isFirst ? lastName(path) : path.replaceAll(".", " "), value] as const] : [];
    }),
    judge: textOf(read(fields.reply)),
    tokens: Object.entries(fields.tokens ?? {}).flatMap(([name, path]) => {
      const count = read(path);
      return typeof count === "number" && (count > 0 || name === "generated") ? [[name, count] as const] : [];
    }),
    choices: choicesOf(fields.choices, read),
    prompt: chatText(read(fields.prompt)),
    fields: otherFields(row, fields, text),
  };
}

/** Returns the declared flags of a row, and a word for each boolean grade. An anchor has no other flags. */
function flagsOf({ flags = [], grades = [] }: AnswerFields, read: Read): readonly string[] {
  const met = flags.filter(({ any }) =>
    any.some((all) => Object.entries(all).every(([path, condition]) => isMet(read(path), condition))),
  );
  if (met.some(({ name }) => name === "anchor")) return ["anchor"];
  const declared = new Set(flags.flatMap(({ any }) => any.flatMap((all) => Object.keys(all))));
  const words = grades.flatMap((path) => {
    const value = declared.has(path) ? null : read(path);
    return typeof value === "boolean" ? [`${value ? "" : "not "}${lastName(path)}`] : [];
  });
  return [...met.map(({ name }) => name), ...words];
}

const lastName = (path: string): string => path.slice(path.lastIndexOf(".") + 1);

/** Returns the fields of a row that the page does not show elsewhere. */
function otherFields(row: Json, fields: AnswerFields, text: string | null): AnswerRow["fields"] {
  const { question, answer, prompt, persona, reply, choices } = fields;
  const paths = [question, answer, prompt, persona, reply, ...Object.values(choices ?? {}), "id"];
  const shown = new Set(paths.map((path) => path?.split(".")[0]));
  return Object.entries(row as Record<string, Json>).filter(
    ([name, value]) => !shown.has(name) && !(text !== null && value === text),
  );
}

const jsonText = (value: Json | undefined): string | null =>
  typeof value === "number" ? String(value) : textOf(value);

const textOf = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

/** Returns a text, or the last message of a chat. */
const lastText = (value: Json | undefined): string | null =>
  Array.isArray(value) ? jsonField(value.at(-1) as Json | undefined, "content") : textOf(value);

/** Returns a text, or a chat with the role of each message. */
const chatText = (value: Json | undefined): string | null =>
  Array.isArray(value)
    ? value
        .map((turn: Json) => `${jsonField(turn, "role") ?? ""}: ${jsonField(turn, "content") ?? ""}`)
        .join("\n\n")
    : textOf(value);

function choicesOf(names: AnswerFields["choices"], read: Read): AnswerChoices | null {
  if (names === undefined) return null;
  const gold = read(names.gold);
  const nats = listOf(read(names.nats), (value): value is number => typeof value === "number");
  const texts = listOf(read(names.texts), isString);
  const labels = listOf(read(names.labels), isString) ?? nats?.map((_, at) => letterOf(at));
  if (labels === undefined || gold === undefined) return null;
  const predicted = labelOf(read(names.predicted));
  const right = labelOf(Array.isArray(gold) ? (gold[0] as Json) : gold);
  const isFull = <T>(list: readonly T[] | null): readonly T[] | null =>
    list?.length === labels.length ? list : null;
  return { labels, texts: isFull(texts), nats: isFull(nats), gold: right ?? "", predicted };
}

const letterOf = (at: number): string => (at < 26 ? String.fromCharCode(65 + at) : String(at + 1));
const labelOf = (value: Json | undefined): string | null =>
  typeof value === "number" ? letterOf(value) : textOf(value);

const isString = (value: Json): value is string => typeof value === "string";

const listOf = <T extends Json>(list: Json | undefined, is: (item: Json) => item is T): readonly T[] | null =>
  Array.isArray(list) && list.every(is) ? list : null;

/** Returns the value at a path; over a list, the values of its elements. Undefined if there is none. */
function valueAt(value: Json | undefined, path: string): Json | undefined {
  const [name, ...rest] = path.split(".");
  if (Array.isArray(value)) {
    const values = value.map((element: Json) => valueAt(element, path));
    return values.every((item) => item === undefined) ? undefined : values.map((item) => item ?? null);
  }
  const field = isMap(value) ? ownValue(value, name!) : undefined;
  return rest.length === 0 ? field : valueAt(field, rest.join("."));
}

/** Whether a value meets a condition. */
function isMet(value: Json | undefined, condition: AnswerCondition): boolean {
  const { is, below, at_most: atMost, above, at_least: atLeast } = condition;
  if (is !== undefined && !is.some((allowed) => allowed === (value ?? null))) return false;
  if ([below, atMost, above, atLeast].every((limit) => limit === undefined)) return true;
  return (
    typeof value === "number" &&
    value < (below ?? Infinity) &&
    value <= (atMost ?? Infinity) &&
    value > (above ?? -Infinity) &&
    value >= (atLeast ?? -Infinity)
  );
}
