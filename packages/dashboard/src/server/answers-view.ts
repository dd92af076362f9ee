import type { RunRecord } from "@periodic-eval/contracts";
import { answerRows } from "../answers/answer-rows.ts";
import { answeredMeasurements } from "../answers/answered-measurements.ts";
import { changesBetweenEnds } from "../answers/phase-changes.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { rowsPlace } from "../answers/rows-place.ts";
import { problemText } from "../html/problem-text.ts";
import type { AnswersData, MeasurementAnswers } from "../page-data/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";
import type { AnswersQuery } from "./query.ts";
import type { rowReader } from "./row-index.ts";
import { answersOfPage, type StoredAnswers } from "./stored-answers.ts";

/** Largest measurements whose forgotten questions a page shows without its script. */
const comparedRows = 5000;

const addressOf = (resultsDir: string): string =>
  `?${new URLSearchParams({ results_dir: resultsDir, view: "answers" }).toString()}`;

/**
 * Returns the answers for the page of a served run. Its script requests all others by address.
 *
 * @param stored The answers that the page shows without its script.
 */
export async function servedAnswers(
  run: RunRecord,
  stored: readonly StoredAnswers[],
  files: ContainedFiles,
): Promise<RunAnswers> {
  const isCompared = ({ samples }: { readonly samples: { readonly rows: number } | null }) =>
    samples !== null && samples.rows <= comparedRows;
  const small = run.phases.map((phase) => ({ ...phase, snapshots: phase.snapshots.filter(isCompared) }));
  return {
    data: { measurements: answeredMeasurements(run), address: addressOf(run.runDir), command: null },
    firstAnswers: answersOfPage(run, stored),
    changes: await changesBetweenEnds({ ...run, phases: small }, files),
  };
}

/** Returns the measurements of a run without rows, or one measurement with some rows; null if there is no such measurement. */
export async function answersView(
  run: RunRecord,
  asked: AnswersQuery,
  { files, rows: reader }: { readonly files: ContainedFiles; readonly rows: ReturnType<typeof rowReader> },
): Promise<AnswersData | null> {
  const all = answeredMeasurements(run);
  const reply = (measurements: readonly MeasurementAnswers[]): AnswersData => ({
    measurements,
    address: addressOf(run.runDir),
    command: null,
  });
  const { of, first, ...range } = asked;
  if (of === null) return reply(all);
  const found = all.find(({ phase, id, step }) => phase === of.phase && id === of.id && step === of.step);
  if (found === undefined) return null;
  try {
    const { rows, total, isVerified } = await reader.read(rowsPlace(run, found), { first, ...range }, files);
    const later = isVerified ? {} : { isVerified: false as const };
    return reply([
      { ...found, first, total, rows: rows.flatMap((row) => answerRows(row, found.declared)), ...later },
    ]);
  } catch (error) {
    return reply([{ ...found, first, rows: [], problem: problemText(error) }]);
  }
}
