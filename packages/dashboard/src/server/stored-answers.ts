import { basename } from "node:path/posix";
import type * as z from "zod";
import type { RunProblem, RunRecord } from "@periodic-eval/contracts";
import { fileError } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { samplesPath } from "@periodic-eval/store";
import { answerRows } from "../answers/answer-rows.ts";
import { answeredMeasurements, rowsPlace, type RowsPlace } from "../answers/answered-measurements.ts";
import { changesBetweenEnds, endsOf, type RunAnswers } from "../answers/read-answers.ts";
import { problemText } from "../html/format.ts";
import type { MeasurementAnswers, AnswersData } from "../page-data/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";
import { labelKey, labelsFile, readLabels, saveLabel, type Label } from "./labels.ts";
import type { answersParameters } from "./query.ts";
import { largeRows, linesOf, type rowReader } from "./row-index.ts";

interface RowFiles {
  readonly files: ContainedFiles;
  readonly rows: ReturnType<typeof rowReader>;
  /** The secret that pages send with labels; null if this server takes none. */
  readonly labelToken: string | null;
}

/**
 * Verifies the rows of each callback's last measurement in each phase, and returns the problems of those that cannot be shown. Larger
 * files than 20,000 rows are verified when their answers are requested.
 */
export async function rowProblems(
  run: RunRecord,
  { files, rows: reader }: Omit<RowFiles, "labelToken">,
): Promise<readonly RunProblem[]> {
  const problems: RunProblem[] = [];
  for (const { last } of endsOf(answeredMeasurements(run))) {
    if (last.total > largeRows) continue;
    const { phase, id, step } = last;
    const source = rowsPlace(run, last);
    try {
      await reader.read(source, { first: 0, count: 0 }, files);
    } catch (error) {
      // A path that the server cannot read, such as a folder, has the code `store`.
      const isDamage = PeriodicEvalError.is(error, "data");
      problems.push({
        file: `${phase}/${basename(samplesPath(source.snapshotFile))}`,
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

/** Returns measurements for a page, with the address of their rows. */
const answersData = (
  { runDir }: RunRecord,
  measurements: readonly MeasurementAnswers[],
  labelToken: string | null,
): AnswersData => ({
  measurements,
  address: `eval/answers?${new URLSearchParams({ results_dir: runDir }).toString()}`,
  command: null,
  ...(labelToken !== null && { labelToken }),
});

/** Returns the answers for the page of a served run. Its script requests their rows by address. */
export async function servedAnswers(
  run: RunRecord,
  { files, labelToken }: Omit<RowFiles, "rows">,
): Promise<RunAnswers> {
  const isCompared = ({ samples }: { readonly samples: { readonly rows: number } | null }) =>
    samples !== null && samples.rows <= comparedRows;
  const small = run.phases.map((phase) => ({ ...phase, snapshots: phase.snapshots.filter(isCompared) }));
  return {
    data: answersData(run, answeredMeasurements(run), labelToken),
    changes: await changesBetweenEnds({ ...run, phases: small }, files),
  };
}

/**
 * Returns the measurements of a run without rows, or one measurement with some rows; null if there is no such measurement, or if it
 * has no answer for `label`.
 *
 * @param label Saved for this measurement first.
 * @throws PeriodicEvalError `store` if the label cannot be saved.
 */
export async function answersView(
  run: RunRecord,
  { phase, id, step, first, count, verify }: Omit<z.output<typeof answersParameters>, "results_dir">,
  label: Label | null,
  { files, rows: reader, labelToken }: RowFiles,
): Promise<AnswersData | null> {
  const all = answeredMeasurements(run);
  if (id === undefined && label === null) return answersData(run, all, labelToken);
  const entry = all.find((item) => item.phase === phase && item.id === id && item.step === (step ?? 0));
  if (entry === undefined) return null;
  const source = rowsPlace(run, entry);
  const file = labelsFile(run, entry);
  if (label !== null) {
    if (!(await hasAnswer(source, label, files))) return null;
    await saveLabel(file, label, files);
  }
  try {
    const range = { first, count, verifiesLater: verify === "later" };
    const { rows, total, isVerified } = await reader.read(source, range, files);
    const later = isVerified ? {} : { isVerified: false as const };
    // A labels file that cannot be read hides no answers.
    let labelsProblem: string | undefined;
    const labels = await readLabels(file, files).catch((error: unknown) => {
      labelsProblem = problemText(error);
      return new Map<string, never>();
    });
    const answers = rows
      .flatMap((row) => answerRows(row, entry.declared))
      .map((row) => {
        const of = labels.get(labelKey(row.item, row.sample));
        return of === undefined ? row : { ...row, label: { aligned: of.aligned, coherent: of.coherent } };
      });
    return answersData(run, [{ ...entry, first, total, rows: answers, ...later, labelsProblem }], labelToken);
  } catch (error) {
    return answersData(run, [{ ...entry, first, rows: [], problem: problemText(error) }], labelToken);
  }
}

/** Whether a measurement has the answer of a label. Reads its rows up to that answer. */
async function hasAnswer(
  { snapshotFile, declared }: RowsPlace,
  { question_id: item, sample }: Label,
  files: ContainedFiles,
): Promise<boolean> {
  const file = samplesPath(snapshotFile);
  try {
    for await (const line of linesOf(file, files.chunks(file))) {
      const answers = line.trim() === "" ? [] : answerRows(JSON.parse(line) as Json, declared);
      if (answers.some((answer) => answer.item === item && answer.sample === sample)) return true;
    }
    return false;
  } catch (error) {
    throw PeriodicEvalError.is(error)
      ? error
      : fileError(file, problemText(error), "rows that can be read", "Restore the file.");
  }
}
