import type { AnswerCondition, AnswerFields } from "@periodic-eval/core";
import type { AnswerRow } from "./answers-data.ts";

/** Whether a row is a fixed answer that a judge grades, not an answer of the model. */
export const isAnchor = ({ flags }: AnswerRow): boolean => flags.includes("anchor");

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
  const others = tokens.filter((one) => one !== generated).map(([name, count]) => `${name} ${count}`);
  const rest = others.join(", ");
  if (generated === undefined) return rest === "" ? "" : `tokens: ${rest}`;
  return `${generated[1]} token${generated[1] === 1 ? "" : "s"}${rest === "" ? "" : ` (${rest})`}`;
}

const numberText = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(1));
