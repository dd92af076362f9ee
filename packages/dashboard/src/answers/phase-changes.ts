import type { Json } from "@periodic-eval/core";
import { readRows, type FileReader } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import type { AnswerRow, MeasurementAnswers } from "../page-data/answers-data.ts";
import { questionChanges, type QuestionChange } from "../page-data/question-changes.ts";
import { answerRows } from "./answer-rows.ts";
import { answeredMeasurements } from "./answered-measurements.ts";
import { rowsPlace } from "./rows-place.ts";

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
export const changesBetween = (
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
export async function readAnswerRows(
  run: RunRecord,
  measurement: MeasurementAnswers,
  files: FileReader,
): Promise<readonly AnswerRow[]> {
  const { snapshotFile, samples } = rowsPlace(run, measurement);
  const rows = await readRows(snapshotFile, samples, files);
  return rows.flatMap((row) => answerRows(row as unknown as Json, measurement.declared));
}
