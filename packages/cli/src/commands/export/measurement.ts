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

/** Flags that say how an answer was read, not what it is. */
const flagsOfReading = ["ungraded", "truncated"];

/**
 * Returns the grades of an answer: `correct`, from its choice or from the flag "wrong"; each grade in words; the first flag
 * of the evaluation, such as "misaligned" or "has the trait"; each number. A number that a metric is the mean of comes first, as it may be a part of the
 * full score, which is neither right nor wrong.
 */
function scoresOf(
  { choices, flags, grades }: AnswerRow,
  row: Row,
  { answer_fields: fields, metrics }: Snapshot,
): readonly Score[] {
  if (flags.includes("ungraded")) return [];
  const flag = fields?.flags?.find(({ name }) => !flagsOfReading.includes(name));
  const isWrongFlag = flag?.name === "wrong";
  const words = (fields?.grades ?? []).flatMap((path): readonly Score[] => {
    const name = path.slice(path.lastIndexOf(".") + 1);
    const isTrue = flags.includes(name);
    return isTrue || flags.includes(`not ${name}`) ? [[name, isTrue]] : [];
  });
  const numbers = grades.flatMap(([name, value]): readonly Score[] =>
    value === null ? [] : [[name, value]],
  );
  const isOfMetric = ([name]: Score) => isWrongFlag && metrics[name]?.value != null;
  const isPart = numbers.some(([, value]) => typeof value === "number" && value > 0 && value < 1);
  const correct = isWrongFlag
    ? isPart
      ? null
      : !flags.includes("wrong")
    : choices === null || choices.predicted === null
      ? null
      : choices.predicted === choices.gold;
  return [
    ...numbers.filter(isOfMetric),
    ...(correct === null ? [] : [["correct", correct] as const]),
    ...words,
    ...(flag === undefined || isWrongFlag || isUnknown(flag, row)
      ? []
      : [[flag.name, flags.includes(flag.name)] as const]),
    ...numbers.filter((score) => !isOfMetric(score)),
  ];
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
    (candidate) => isRecord(candidate) && typeof candidate["hub"] === "string",
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

/**
 * Returns a value as JSON that every reader takes: halves of surrogate pairs, which Python refuses, become U+FFFD, and characters at
 * which Python splits lines are escaped.
 */
export const wellFormedJson = (value: unknown, indent?: number): string =>
  JSON.stringify(
    value,
    (_, item: unknown) => (typeof item === "string" ? wellFormed(item) : item),
    indent,
  ).replaceAll(/[\u0085\u2028\u2029]/g, escaped);

/** Returns one UTF-16 unit as JSON's escape. */
export const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const wellFormed = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, "\uFFFD");
