import { basename } from "node:path/posix";
import type { RunProblem, RunRecord } from "@periodic-eval/contracts";
import { PeriodicEvalError } from "@periodic-eval/core";
import { samplesPath } from "@periodic-eval/store";
import { answerRows } from "../answers/answer-rows.ts";
import { answeredMeasurements, rowsPlace } from "../answers/answered-measurements.ts";
import { changesBetweenEnds, endsOf, type RunAnswers } from "../answers/read-answers.ts";
import { problemText } from "../html/format.ts";
import type { MeasurementAnswers, AnswersData } from "../page-data/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";
import type { AnswersQuery } from "./query.ts";
import { largeRows, type rowReader } from "./row-index.ts";

interface RowFiles {
  readonly files: ContainedFiles;
  readonly rows: ReturnType<typeof rowReader>;
}

/**
 * Verifies the rows of each callback's last measurement in each phase, and returns the problems of those that cannot be shown. Larger
 * files than 20,000 rows are verified when their answers are requested.
 */
export async function rowProblems(
  run: RunRecord,
  { files, rows: reader }: RowFiles,
): Promise<readonly RunProblem[]> {
  const problems: RunProblem[] = [];
  for (const { last } of endsOf(answeredMeasurements(run))) {
    if (last.total > largeRows) continue;
    const { phase, id, step } = last;
    const place = rowsPlace(run, last);
    try {
      await reader.read(place, { first: 0, count: 0 }, files);
    } catch (error) {
      // A path that the server cannot read, such as a folder, has the code `store`.
      const isDamage = PeriodicEvalError.is(error, "data");
      problems.push({
        file: `${phase}/${basename(samplesPath(place.snapshotFile))}`,
        kind: isDamage ? "rows" : "unavailable",
        key: { phase, id, step },
        got: isDamage ? error.got : problemText(error),
        expected: isDamage ? error.expected : "rows that can be read",
        effect: "its answers cannot be shown",
        message: problemText(error),
        invalid: false,
      });
    }
  }
  return problems;
}

/** Largest measurements whose forgotten questions the summary of a page counts. */
const comparedRows = 5000;

const addressOf = (resultsDir: string): string =>
  `?${new URLSearchParams({ results_dir: resultsDir, view: "answers" }).toString()}`;

/** Returns the answers for the page of a served run. Its script requests their rows by address. */
export async function servedAnswers(run: RunRecord, files: ContainedFiles): Promise<RunAnswers> {
  const isCompared = ({ samples }: { readonly samples: { readonly rows: number } | null }) =>
    samples !== null && samples.rows <= comparedRows;
  const small = run.phases.map((phase) => ({ ...phase, snapshots: phase.snapshots.filter(isCompared) }));
  return {
    data: { measurements: answeredMeasurements(run), address: addressOf(run.runDir), command: null },
    changes: await changesBetweenEnds({ ...run, phases: small }, files),
  };
}

/** Returns the measurements of a run without rows, or one measurement with some rows; null if there is no such measurement. */
export async function answersView(
  run: RunRecord,
  asked: AnswersQuery,
  { files, rows: reader }: RowFiles,
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
