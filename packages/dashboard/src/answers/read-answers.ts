import { gzipSync } from "node:zlib";
import type { RunRecord } from "@periodic-eval/contracts";
import type { Json } from "@periodic-eval/core";
import { nodeFiles, type FileReader, readRows } from "@periodic-eval/store";
import { problemText } from "../html/format.ts";
import {
  type AnswerRow,
  type AnswersData,
  type MeasurementAnswers,
  questionChanges,
  type QuestionChange,
} from "../page-data/answers-data.ts";
import { answerRows } from "./answer-rows.ts";
import { answeredMeasurements, rowsPlace } from "./answered-measurements.ts";

/** The answers that a page of a file shows. */
export interface RunAnswers {
  readonly data: AnswersData;
  /** The changed questions of each phase, from its first measurement to its last; only multiple-choice questions. */
  readonly changes: readonly PhaseChanges[];
}

export interface ReadAnswersOptions {
  /** Limit of the packed rows. Default: 8 MB. */
  readonly maxBytes?: number;
  readonly files?: FileReader;
}

/**
 * Reads the answers of a run for a page in a file. The ends of each callback's curves come first, then the other measurements, newest
 * first, until the limit is reached. Needs the memory of one measurement and of the packed rows.
 */
export async function readAnswers(run: RunRecord, options: ReadAnswersOptions = {}): Promise<RunAnswers> {
  const { maxBytes = 8_000_000, files = nodeFiles } = options;
  const measurements = answeredMeasurements(run);
  const ends = endsOf(measurements);
  const endMeasurements = new Set(ends.flatMap(({ first, last }) => [last, first]));
  const order = [...endMeasurements, ...measurements.toReversed().filter((one) => !endMeasurements.has(one))];
  const read = new Map<MeasurementAnswers, MeasurementAnswers>();
  const endRows = new Map<MeasurementAnswers, readonly AnswerRow[]>();
  let bytes = 0;
  let isFull = false;
  for (const one of order) {
    if (isFull && !endMeasurements.has(one)) break;
    try {
      const rows = await readAnswerRows(run, one, files);
      const packed: string | null = isFull ? null : gzipSync(JSON.stringify(rows)).toString("base64");
      isFull = packed === null || bytes + packed.length > maxBytes;
      if (!isFull) bytes += packed!.length;
      read.set(one, isFull ? one : { ...one, packed: packed! });
      if (!endMeasurements.has(one)) continue;
      // Completions are long, and their rows have no part in the changes.
      if (rows.some(({ choices }) => choices !== null)) endRows.set(one, rows);
    } catch (error) {
      read.set(one, { ...one, problem: problemText(error) });
    }
  }
  const all = measurements.map((one) => read.get(one) ?? one);
  const isWhole = all.every(({ packed, problem }) => packed !== undefined || problem !== null);
  return {
    data: {
      measurements: all,
      address: null,
      command: isWhole ? null : `npx periodic-eval report ${JSON.stringify(run.runDir)} --serve`,
    },
    changes: changesBetween(ends, endRows),
  };
}

/** The forgotten and regained questions of one callback in one phase, from its first measurement to its last. */
export interface PhaseChanges {
  readonly phase: string;
  readonly id: string;
  readonly fromStep: number;
  readonly toStep: number;
  readonly changes: readonly QuestionChange[];
}

/** The first and last measurement of one callback in one phase. */
export interface Ends {
  readonly first: MeasurementAnswers;
  readonly last: MeasurementAnswers;
}

/** Returns the first and last measurement of each callback in each phase. */
export function endsOf(measurements: readonly MeasurementAnswers[]): readonly Ends[] {
  const ends = new Map<string, Ends>();
  for (const one of measurements) {
    const key = JSON.stringify([one.phase, one.id]);
    ends.set(key, { first: ends.get(key)?.first ?? one, last: one });
  }
  return [...ends.values()];
}

/**
 * Returns the changed questions between the ends of each phase, only of multiple-choice questions.
 *
 * @param rows The rows of the measurements. Ends without rows have no changes.
 */
const changesBetween = (
  ends: readonly Ends[],
  rows: ReadonlyMap<MeasurementAnswers, readonly AnswerRow[]>,
): readonly PhaseChanges[] =>
  ends.flatMap(({ first, last }) => {
    const [from, to] = [rows.get(first), rows.get(last)];
    if (first === last || from === undefined || to === undefined) return [];
    if (![from, to].every((some) => some.some(({ choices }) => choices !== null))) return [];
    const { phase, id } = last;
    return [{ phase, id, fromStep: first.step, toStep: last.step, changes: questionChanges(from, to) }];
  });

/** Reads the ends of each phase and returns the changed questions. Leaves out callbacks whose rows cannot be read. */
export async function changesBetweenEnds(
  run: RunRecord,
  files: FileReader,
): Promise<readonly PhaseChanges[]> {
  const ends = endsOf(answeredMeasurements(run));
  const changes: PhaseChanges[] = [];
  for (const one of ends) {
    const rows = new Map<MeasurementAnswers, readonly AnswerRow[]>();
    for (const end of one.first === one.last ? [] : [one.first, one.last]) {
      const read = await readAnswerRows(run, end, files).catch(() => null);
      if (read !== null) rows.set(end, read);
    }
    changes.push(...changesBetween([one], rows));
  }
  return changes;
}

/** Reads and verifies the answers of a measurement. */
async function readAnswerRows(
  run: RunRecord,
  measurement: MeasurementAnswers,
  files: FileReader,
): Promise<readonly AnswerRow[]> {
  const { snapshotFile, samples } = rowsPlace(run, measurement);
  const rows = await readRows(snapshotFile, samples, files);
  return rows.flatMap((row) => answerRows(row as unknown as Json, measurement.declared));
}
