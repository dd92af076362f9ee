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
  const ends = endsOf(measurements).flatMap(({ first, last }) => [last, first]);
  const read = new Map<MeasurementAnswers, MeasurementAnswers>();
  let bytes = 0;
  for (const measurement of new Set([...ends, ...measurements.toReversed()])) {
    try {
      const rows = await readAnswerRows(run, measurement, files);
      const packed: string = gzipSync(JSON.stringify(rows)).toString("base64");
      bytes += packed.length;
      if (bytes > maxBytes) break;
      read.set(measurement, { ...measurement, packed });
    } catch (error) {
      read.set(measurement, { ...measurement, problem: problemText(error) });
    }
  }
  const isWhole = read.size === measurements.length;
  return {
    data: {
      measurements: measurements.map((measurement) => read.get(measurement) ?? measurement),
      address: null,
      command: isWhole ? null : `npx periodic-eval report ${JSON.stringify(run.runDir)} --serve`,
    },
    changes: await changesBetweenEnds(run, files),
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
  for (const measurement of measurements) {
    const key = JSON.stringify([measurement.phase, measurement.id]);
    ends.set(key, { first: ends.get(key)?.first ?? measurement, last: measurement });
  }
  return [...ends.values()];
}

/**
 * Returns the changed questions between the ends of each phase, only of multiple-choice questions. Leaves out callbacks whose rows
 * cannot be read.
 */
export async function changesBetweenEnds(
  run: RunRecord,
  files: FileReader,
): Promise<readonly PhaseChanges[]> {
  const changes: PhaseChanges[] = [];
  for (const { first, last } of endsOf(answeredMeasurements(run))) {
    if (first === last || [first, last].some(({ declared }) => declared.choices === undefined)) continue;
    const [from, to] = [
      await readAnswerRows(run, first, files).catch(() => []),
      await readAnswerRows(run, last, files).catch(() => []),
    ];
    if (![from, to].every((rows) => rows.some(({ choices }) => choices !== null))) continue;
    const { phase, id } = last;
    changes.push({ phase, id, fromStep: first.step, toStep: last.step, changes: questionChanges(from, to) });
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
