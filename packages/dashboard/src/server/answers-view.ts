import { join } from "node:path/posix";
import { errorMessage } from "@periodic-eval/core/internal";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import { answerRows } from "../answers/answer-rows.ts";
import { answeredMeasurements, readAnswers, type RunAnswers } from "../answers/read-answers.ts";
import type { AnswersData, MeasurementAnswers } from "../client/answers/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";
import type { AnswersQuery } from "./query.ts";
import type { rowReader } from "./row-index.ts";
import type { StoredAnswers } from "./stored-answers.ts";

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
  const measurements = answeredMeasurements(run);
  const isCompared = ({ samples }: { readonly samples: { readonly rows: number } | null }) =>
    samples !== null && samples.rows <= comparedRows;
  const small = run.phases.map((phase) => ({ ...phase, snapshots: phase.snapshots.filter(isCompared) }));
  const { changes } = await readAnswers({ ...run, phases: small }, { maxBytes: 0, firstCount: 0, files });
  return {
    data: { measurements, address: addressOf(run.runDir), command: null },
    firstAnswers: stored.flatMap(({ phase, id, step, first, rows, count }) => {
      const one = measurements.find((other) => isOf(other, { phase, id, step }));
      return one === undefined ? [] : [{ ...one, first, total: count, rows: rows.flatMap(answerRows) }];
    }),
    changes,
  };
}

const isOf = (
  one: MeasurementAnswers,
  { phase, id, step }: { readonly phase: string; readonly id: string; readonly step: number },
): boolean => one.phase === phase && one.id === id && one.step === step;

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
  const { of, first, count } = asked;
  if (of === null) return reply(all);
  const found = all.find((one) => isOf(one, of));
  if (found === undefined) return null;
  const phase = run.phases.find(({ name }) => name === of.phase)!;
  const { samples } = phase.snapshots.find(({ id, step }) => id === of.id && step === of.step)!;
  const { file } = phase.series.find(({ id }) => id === of.id)!.points.find(({ step }) => step === of.step)!;
  try {
    const path = join(run.runDir, "periodic_eval", file);
    const { rows, total } = await reader.read(path, samples, { first, count }, files);
    return reply([{ ...found, first, total, rows: rows.flatMap(answerRows) }]);
  } catch (error) {
    const problem = errorMessage(error).replace(/^\[periodic-eval\] /, "");
    return reply([{ ...found, first, rows: [], problem }]);
  }
}
