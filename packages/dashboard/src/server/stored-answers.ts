import { dataError } from "@periodic-eval/contracts/options";
import { createHash } from "node:crypto";
import { basename } from "node:path/posix";
import type { RunProblem, RunRecord } from "@periodic-eval/contracts";
import { PeriodicEvalError, type AnswerFields, type Json, type SnapshotKey } from "@periodic-eval/core";
import { checkRows, samplesPath } from "@periodic-eval/store";
import { answerRows } from "../answers/answer-rows.ts";
import { answeredMeasurements, rowsPlace, type RowsPlace } from "../answers/answered-measurements.ts";
import { changesBetweenEnds, type RunAnswers } from "../answers/read-answers.ts";
import { problemText } from "../html/format.ts";
import { isAnchor, type MeasurementAnswers, type AnswersData } from "../page-data/answers-data.ts";
import type { ContainedFiles } from "./contained-files.ts";
import type { AnswersQuery } from "./query.ts";
import { linesOf, type rowReader } from "./row-index.ts";

/** The stored answers of a callback's last measurement in a phase. */
export interface StoredAnswers {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
  /** 0-based position of the first of `rows` among all answers. */
  readonly first: number;
  /** Some rows with generated text. A judge's anchors are no answers. */
  readonly rows: readonly { readonly [key: string]: Json }[];
  /** Number of all answers. */
  readonly count: number;
  /** Whether the rows are those that the snapshot names. */
  readonly isVerified: boolean;
  /** Why the rows cannot be shown; null if they can. */
  readonly problem: RunProblem | null;
}

/** Which answers of each callback to read. */
export interface AnswerRange {
  /** 0-based. */
  readonly first: number;
  readonly count: number;
  /** Leaves out measurements with more rows. Default: none. */
  readonly maxRows?: number;
  /** Whether rows of a large file may be read before they are verified. Default: false. */
  readonly verifiesLater?: boolean;
}

/** Rows of the largest measurement that a part of its answers reads in full. */
export const maxScannedRows = 20_000;

/**
 * Reads the stored answers of each callback's last measurement in each phase, with the memory of `range`. Omits callbacks that
 * do not generate text. A measurement whose rows cannot be read has a `problem`. Of a measurement with more than 20,000 rows, a part
 * counts all rows, not only answers.
 */
export async function readStoredAnswers(
  run: RunRecord,
  { files, rows: reader }: { readonly files: ContainedFiles; readonly rows: ReturnType<typeof rowReader> },
  range: AnswerRange,
  maxCharacters = maxReplyCharacters,
): Promise<readonly StoredAnswers[]> {
  const found: StoredAnswers[] = [];
  const budget: Budget = { left: maxCharacters, all: maxCharacters };
  for (const { name: phase, series, snapshots } of run.phases) {
    for (const { id } of series) {
      const last = snapshots.findLast((snapshot) => snapshot.id === id && snapshot.samples !== null);
      if (last === undefined || last.samples!.rows > (range.maxRows ?? Infinity)) continue;
      const place = rowsPlace(run, last);
      const isIndexed = last.samples!.rows > maxScannedRows && range.count <= maxScannedRows;
      const one = { phase, id, step: last.step, first: range.first };
      try {
        const read = isIndexed
          ? await readIndexed(place, files, range, reader)
          : await readRange(place, files, range, budget);
        if (read.count > 0) found.push({ ...one, ...read, problem: null });
      } catch (error) {
        found.push({ ...one, rows: [], count: 0, isVerified: true, problem: problemOf(place, last, error) });
      }
    }
  }
  return found;
}

/** Returns the problem of rows that cannot be read, for the list of the run's problems. */
function problemOf(
  { snapshotFile }: RowsPlace,
  { phase, id, step }: SnapshotKey,
  error: unknown,
): RunProblem {
  // A file that the server must not read, such as one with two names, has the code `store`.
  const isDamage = PeriodicEvalError.is(error, "data");
  return {
    file: `${phase}/${basename(samplesPath(snapshotFile))}`,
    kind: isDamage ? "rows" : "unavailable",
    key: { phase, id, step },
    got: isDamage ? error.got : problemText(error),
    expected: isDamage ? error.expected : "rows that can be read",
    effect: "its answers cannot be shown",
    message: problemText(error),
    invalid: false,
  };
}

async function readIndexed(
  place: RowsPlace,
  files: ContainedFiles,
  range: AnswerRange,
  reader: ReturnType<typeof rowReader>,
): Promise<Pick<StoredAnswers, "rows" | "count" | "isVerified">> {
  const { rows, total, isVerified } = await reader.read(place, range, files);
  return {
    rows: rows.filter((row) => isAnswer(row, place.declared)) as StoredAnswers["rows"],
    count: total,
    isVerified,
  };
}

/** Whether a row contains generated text. Every row of an evaluation that declares no fields may contain some. */
const isAnswer = (row: Json, declared: AnswerFields): boolean =>
  Object.keys(declared).length === 0 ||
  answerRows(row, declared).some((answer) => answer.text !== null && !isAnchor(answer));

/** Returns stored answers for a page. Leaves out evaluations whose answers no page shows. */
export function answersOfPage(
  run: RunRecord,
  stored: readonly StoredAnswers[],
): readonly MeasurementAnswers[] {
  const measurements = answeredMeasurements(run);
  return stored.flatMap(({ phase, id, step, first, rows, count, problem }) => {
    const one = measurements.find((other) => other.phase === phase && other.id === id && other.step === step);
    if (one === undefined) return [];
    if (problem !== null) return [{ ...one, rows: [], problem: problem.message }];
    return [{ ...one, first, total: count, rows: rows.flatMap((row) => answerRows(row, one.declared)) }];
  });
}

/** Maximum size of the answers in a reply, together. */
const maxReplyCharacters = 64 * 2 ** 20;

/** The characters of answers that a reply may have. */
interface Budget {
  left: number;
  readonly all: number;
}

/**
 * Returns the answers of a range, and the number of all answers.
 *
 * @param budget Reduced by the characters of the returned answers.
 * @throws Error if the rows are not those that were written, or for more answers than a reply may have.
 */
async function readRange(
  { snapshotFile, samples, declared }: RowsPlace,
  files: ContainedFiles,
  range: AnswerRange,
  budget: Budget,
): Promise<Pick<StoredAnswers, "rows" | "count" | "isVerified">> {
  if (samples === null) return { rows: [], count: 0, isVerified: true };
  const { first, count: most } = range;
  const { left } = budget;
  const file = samplesPath(snapshotFile);
  const hash = createHash("sha256");
  const rows: StoredAnswers["rows"][number][] = [];
  let [count, number] = [0, 0];
  for await (const { line: text } of linesOf(file, files.chunks(file), (chunk) => hash.update(chunk))) {
    number++;
    if (text === "") continue;
    const row = parseRow(text, `${file}:${number}`);
    if (!isAnswer(row, declared)) continue;
    if (count >= first && count < first + most) {
      budget.left -= text.length;
      if (budget.left < 0) throw tooManyAnswers(file, budget.all);
      rows.push(row as StoredAnswers["rows"][number]);
    }
    count++;
  }
  const check = await checkRows(snapshotFile, samples, hash.digest("hex"), files);
  if (check.state === "replaced") {
    budget.left = left;
    return readRange({ snapshotFile, samples: check.samples, declared }, files, range, budget);
  }
  if (check.state === "sound") return { rows, count, isVerified: true };
  throw damagedRows(
    file,
    `${number} rows, edited or damaged after they were written`,
    `the ${samples.rows} rows that the snapshot names`,
  );
}

const tooManyAnswers = (file: string, most: number): Error =>
  new Error(
    `${file}: got answers of more than ${most} characters, expected fewer. Request them in parts, with page and per_page.`,
  );

function parseRow(text: string, where: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw damagedRows(where, "a line that is not JSON", "a row");
  }
}

const damagedRows = (where: string, got: string, expected: string): PeriodicEvalError =>
  dataError(where, got, expected, "Restore the file, or measure again.");

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
