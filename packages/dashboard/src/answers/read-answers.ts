import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Json, Snapshot } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { nodeFiles, readRows, type FileReader, type RunRecord } from "@periodic-eval/core/snapshots";
import type { AnswerRow, AnswersData, MeasurementAnswers } from "../client/answers/answers-data.ts";
import { questionChanges, type QuestionChange } from "../client/answers/question-changes.ts";
import { answerRows } from "./answer-rows.ts";

/** The answers that a page of a file shows. */
export interface RunAnswers {
  readonly data: AnswersData;
  /** The first answers of the last measurement of each callback in each phase. */
  readonly firstAnswers: readonly MeasurementAnswers[];
  /** What each phase changed, from its first measurement to its last; only multiple-choice questions. */
  readonly changes: readonly PhaseChanges[];
}

/** The forgotten and regained questions of one callback in one phase. */
export interface PhaseChanges {
  readonly phase: string;
  readonly id: string;
  readonly fromStep: number;
  readonly toStep: number;
  readonly changes: readonly QuestionChange[];
}

export interface ReadAnswersOptions {
  /** Limit of the packed rows. Default: 8 MB. */
  readonly maxBytes?: number;
  /** First answers of each callback. Default: 10. */
  readonly firstCount?: number;
  readonly files?: FileReader;
}

/** The first and last measurement of one callback in one phase. */
interface Edges {
  readonly first: MeasurementAnswers;
  readonly last: MeasurementAnswers;
}

/** Returns a run's measurements with stored rows, without the rows. Leaves out evaluations that store no answers. */
export function answeredMeasurements(run: RunRecord): readonly MeasurementAnswers[] {
  return run.phases.flatMap(({ snapshots }) =>
    snapshots.filter(hasAnswers).map(({ phase, id, evaluation, step, run_step: runStep, samples }) => ({
      phase,
      id,
      evaluation,
      step,
      runStep,
      total: samples!.rows,
      first: 0,
      rows: null,
      problem: null,
    })),
  );
}

const hasAnswers = ({ samples, evaluation }: Snapshot): boolean =>
  samples !== null && samples.rows > 0 && !/^(kl_to_|margin$)/.test(evaluation);

/**
 * Reads the answers of a run for a page in a file. The ends of each callback's curves come first, then the other measurements, newest
 * first, until the limit is reached. Needs the memory of one measurement and of the packed rows.
 */
export async function readAnswers(run: RunRecord, options: ReadAnswersOptions = {}): Promise<RunAnswers> {
  const { maxBytes = 8_000_000, firstCount = 10, files = nodeFiles } = options;
  const measurements = answeredMeasurements(run);
  const edges = edgesOf(measurements);
  const ends = new Set(edges.flatMap(({ first, last }) => [last, first]));
  const order = [...ends, ...measurements.toReversed().filter((one) => !ends.has(one))];
  const read = new Map<MeasurementAnswers, MeasurementAnswers>();
  const firstAnswers = new Map<MeasurementAnswers, MeasurementAnswers>();
  const endRows = new Map<MeasurementAnswers, readonly AnswerRow[]>();
  let bytes = 0;
  let isFull = maxBytes === 0;
  for (const one of order) {
    if (isFull && !ends.has(one)) break;
    try {
      const rows = (await rowsOf(run, one, files)).flatMap((row) => answerRows(row as unknown as Json));
      const packed = isFull ? null : gzipSync(JSON.stringify(rows)).toString("base64");
      isFull = packed === null || bytes + packed.length > maxBytes;
      if (!isFull) bytes += packed!.length;
      read.set(one, isFull ? one : { ...one, packed: packed! });
      if (!ends.has(one)) continue;
      firstAnswers.set(one, { ...one, rows: rows.slice(0, firstCount) });
      if (rows.some(({ choices }) => choices !== null)) endRows.set(one, rows);
    } catch (error) {
      const problem = errorMessage(error).replace(/^\[periodic-eval\] /, "");
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
    firstAnswers: edges.flatMap(({ last }) => firstAnswers.get(last) ?? []),
    changes: edges.flatMap(({ first, last }): readonly PhaseChanges[] => {
      const [from, to] = [endRows.get(first), endRows.get(last)];
      if (first === last || from === undefined || to === undefined) return [];
      const { phase, id } = last;
      return [{ phase, id, fromStep: first.step, toStep: last.step, changes: questionChanges(from, to) }];
    }),
  };
}

function edgesOf(measurements: readonly MeasurementAnswers[]): readonly Edges[] {
  const edges = new Map<string, Edges>();
  for (const one of measurements) {
    const key = JSON.stringify([one.phase, one.id]);
    edges.set(key, { first: edges.get(key)?.first ?? one, last: one });
  }
  return [...edges.values()];
}

function rowsOf(run: RunRecord, { phase, id, step }: MeasurementAnswers, files: FileReader) {
  const found = run.phases.find(({ name }) => name === phase)!;
  const { samples } = found.snapshots.find((snapshot) => snapshot.id === id && snapshot.step === step)!;
  const { file } = found.series
    .find((series) => series.id === id)!
    .points.find((point) => point.step === step)!;
  return readRows(join(run.runDir, "periodic_eval", file), samples, files);
}
