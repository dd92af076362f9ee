import { basename, resolve } from "node:path";
import type { AnswerFields, Json, Row, Snapshot } from "@periodic-eval/contracts";
import { isRecord, valueAt } from "@periodic-eval/contracts/options";
import { answerRows, isAnchor, type AnswerRow } from "@periodic-eval/dashboard";

/** A measurement with its answers, as the formats write it. */
export interface Measurement {
  readonly snapshot: Snapshot;
  readonly runDir: string;
  readonly samples: readonly MeasuredSample[];
}

/** An answer of the model. A judge's anchors are none. */
export interface MeasuredSample extends AnswerRow {
  /** The id of the item, unique together with `epoch`, without characters that lead out of a folder. */
  readonly id: string;
  /** Counts the answers to one item, from 1. */
  readonly epoch: number;
  /** By name, the most telling first. An answer without a grade has none. */
  readonly scores: readonly Score[];
}

type Score = readonly [name: string, value: number | string | boolean];

export const samplesOf = (snapshot: Snapshot, rows: readonly Row[]): readonly MeasuredSample[] =>
  rows
    .flatMap((row) =>
      answerRows(row as unknown as Json, snapshot.answer_fields ?? {}).map((answer) => ({ row, answer })),
    )
    .filter(({ answer }) => !isAnchor(answer))
    .map(({ row, answer }, at) => ({
      ...answer,
      id: isSafeName(answer.item) ? answer.item : `row-${at}`,
      epoch: answer.sample + 1,
      scores: scoresOf(answer, row, snapshot),
    }));

/** Whether a name leads to a file in a folder, also on Windows. */
const isSafeName = (name: string): boolean =>
  name !== "" &&
  name.length < 200 &&
  !/[\\:\p{Cc}\p{Surrogate}]/u.test(name) &&
  name.split("/").every((part) => !/^\.*$/.test(part));

/**
 * Returns the grades of an answer: `correct`, from its choice or from the flag "wrong"; its other first flag, such as "misaligned" or "has
 * the trait"; and each grade.
 */
function scoresOf(
  { choices, flags, grades }: AnswerRow,
  row: Row,
  { answer_fields: fields }: Snapshot,
): readonly Score[] {
  if (flags.includes("ungraded")) return [];
  const [first] = fields?.flags ?? [];
  const isWrongFlag = first?.name === "wrong";
  const correct = isWrongFlag
    ? !flags.includes("wrong")
    : choices === null || choices.predicted === null
      ? null
      : choices.predicted === choices.gold;
  const words = (fields?.grades ?? []).flatMap((path): readonly Score[] => {
    const name = path.slice(path.lastIndexOf(".") + 1);
    const isTrue = flags.includes(name);
    return isTrue || flags.includes(`not ${name}`) ? [[name, isTrue]] : [];
  });
  const scores: readonly (Score | null)[] = [
    correct === null ? null : ["correct", correct],
    first === undefined || isWrongFlag || isUnknown(first, row)
      ? null
      : [first.name, flags.includes(first.name)],
    ...grades.map(([name, value]): Score | null => (value === null ? null : [name, value])),
    ...words,
  ];
  return scores.filter((score) => score !== null);
}

/** Whether a field that a flag depends on was not measured, as in a question that sycophancy's rate leaves out. */
const isUnknown = ({ any }: NonNullable<AnswerFields["flags"]>[number], row: Row): boolean =>
  any.every((all) => Object.keys(all).some((path) => valueAt(row, path.split(".")) === null));

/** The model that was measured: the last part of a path, or `owner/name`. */
export function modelName({ provenance }: Snapshot): string {
  const name = valueAt(provenance.model, ["name"]);
  if (typeof name !== "string" || name === "") return "model";
  return /^[\w.-]+\/[\w.-]+$/.test(name) && !name.startsWith(".") ? name : basename(resolve(name));
}

/** The split of a dataset on the hub whose questions were asked; null for a file. */
export function datasetOf({ provenance: { evaluation } }: Snapshot): {
  readonly hub: string;
  readonly config: string;
  readonly split: string;
  readonly commit: string;
} | null {
  const source = [evaluation, valueAt(evaluation, ["documents"])].find(
    (one) => isRecord(one) && typeof one["hub"] === "string",
  );
  return (source as ReturnType<typeof datasetOf> | undefined) ?? null;
}

/** How answers were drawn; a value is undefined if the evaluation does not generate. */
export function samplingOf({ provenance: { evaluation } }: Snapshot) {
  const number = (name: string) => {
    const value = valueAt(evaluation, ["sampling", name]);
    return typeof value === "number" ? value : undefined;
  };
  return { temperature: number("temperature"), top_p: number("topP"), max_tokens: number("maxNewTokens") };
}

/** Returns the name and version of `@periodic-eval/core 0.1.0`. */
export function libraryOf({ provenance }: Snapshot): { readonly name: string; readonly version: string } {
  const at = provenance.created_by.lastIndexOf(" ");
  return { name: provenance.created_by.slice(0, at), version: provenance.created_by.slice(at + 1) };
}

/** Returns the snapshot without what a format writes elsewhere: receipt, provenance, comparisons, warnings and times stay. */
export function metadataOf({ metrics: _values, answer_fields: _fields, samples: _file, ...rest }: Snapshot) {
  return rest;
}

/** Returns a value as JSON that every reader takes: halves of surrogate pairs, which Python refuses, become U+FFFD. */
export const wellFormedJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, (_, one: unknown) => (typeof one === "string" ? wellFormed(one) : one), indent);

export const wellFormed = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, "\uFFFD");
