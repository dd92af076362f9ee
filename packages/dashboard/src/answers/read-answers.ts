import { gzipSync } from "node:zlib";
import { nodeFiles, type FileReader } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { problemText } from "../html/problem-text.ts";
import { isAnchor } from "../page-data/answer-text.ts";
import type { AnswerRow, AnswersData, MeasurementAnswers } from "../page-data/answers-data.ts";
import { answeredMeasurements } from "./answered-measurements.ts";
import { changesBetween, endsOf, readAnswerRows, type PhaseChanges } from "./phase-changes.ts";

/** The answers that a page of a file shows. */
export interface RunAnswers {
  readonly data: AnswersData;
  /** The first answers of the last measurement of each callback in each phase. */
  readonly firstAnswers: readonly MeasurementAnswers[];
  /** The changed questions of each phase, from its first measurement to its last; only multiple-choice questions. */
  readonly changes: readonly PhaseChanges[];
}

export interface ReadAnswersOptions {
  /** Limit of the packed rows. Default: 8 MB. */
  readonly maxBytes?: number;
  /** First answers of each callback. Default: 10. */
  readonly firstCount?: number;
  readonly files?: FileReader;
}

/**
 * Reads the answers of a run for a page in a file. The ends of each callback's curves come first, then the other measurements, newest
 * first, until the limit is reached. Needs the memory of one measurement and of the packed rows.
 */
export async function readAnswers(run: RunRecord, options: ReadAnswersOptions = {}): Promise<RunAnswers> {
  const { maxBytes = 8_000_000, firstCount = 10, files = nodeFiles } = options;
  const measurements = answeredMeasurements(run);
  const ends = endsOf(measurements);
  const endMeasurements = new Set(ends.flatMap(({ first, last }) => [last, first]));
  const order = [...endMeasurements, ...measurements.toReversed().filter((one) => !endMeasurements.has(one))];
  const read = new Map<MeasurementAnswers, MeasurementAnswers>();
  const firstAnswers = new Map<MeasurementAnswers, MeasurementAnswers>();
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
      const answers = rows.filter((row) => !isAnchor(row));
      firstAnswers.set(one, { ...one, total: answers.length, rows: answers.slice(0, firstCount) });
      // Completions are long, and their rows have no part in the changes.
      if (rows.some(({ choices }) => choices !== null)) endRows.set(one, rows);
    } catch (error) {
      const problem = problemText(error);
      read.set(one, { ...one, problem });
      firstAnswers.set(one, { ...one, rows: [], problem });
    }
  }
  const all = measurements.map((one) => read.get(one) ?? one);
  const isWhole = all.every(({ packed, problem }) => packed !== undefined || problem !== null);
  return {
    data: {
      measurements: all,
      address: null,
      command: isWhole ? null : `npx periodic-eval serve ${JSON.stringify(run.runDir)}`,
    },
    firstAnswers: ends.flatMap(({ last }) => firstAnswers.get(last) ?? []),
    changes: changesBetween(ends, endRows),
  };
}
