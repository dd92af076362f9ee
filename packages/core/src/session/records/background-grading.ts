import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { seedOf } from "../../random/streams.ts";
import type { Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { gradeRows } from "./checked-rows.ts";
import { commit } from "./commit.ts";
import { pairedOf, reservedPaired, resultsOf, type Look } from "./compare.ts";
import type { Run } from "../run.ts";

/** Rows that were measured, on their way to a record. */
export interface Ungraded {
  /** The record as far as it is known, with the status that it will have in the end. */
  readonly base: Snapshot;
  readonly rows: readonly Row[];
  readonly evaluation: AnyEvaluation;
  readonly by: TrainerCallback | null;
  readonly look: Look;
}

/** Records rows: at once where they need no grading, else as `grading`, to be replaced whole when that is done. */
export async function recordRows(run: Run, ungraded: Ungraded, stale: string | null): Promise<void> {
  const { base, rows, evaluation, look, by } = ungraded;
  if (evaluation.grade === undefined) {
    let done: Snapshot;
    try {
      done = await withResults(run, ungraded, rows);
    } catch (error) {
      await commit(run, failed(run, ungraded, error), rows, { stale, failure: { by, error } });
      return;
    }
    await commit(run, done, rows, { stale, by });
    return;
  }
  let primary: string | null = null;
  try {
    primary = resultsOf(evaluation, [], firingSeed(run, base)).primary;
  } catch {
    // Metrics that cannot stand an empty list reserve nothing; they are told of when they are asked for real rows.
  }
  const waiting: Snapshot = {
    ...base,
    status: "grading",
    primary_metric: primary,
    paired: reservedPaired(base.id, look, primary),
  };
  await commit(run, waiting, rows, { stale, by });
  startGrading(run, ungraded);
}

/** Grades beside training. Gradings of one id run one after the other, so that each finds its baseline graded. */
export function startGrading(run: Run, ungraded: Ungraded): void {
  const { id } = ungraded.base;
  const before = run.gradings.get(id) ?? Promise.resolve();
  run.gradings.set(
    id,
    before.then(() => grade(run, ungraded)),
  );
}

/** Never rejects. Where time is up the record stays `grading`: it is finished on resume. */
async function grade(run: Run, ungraded: Ungraded): Promise<void> {
  const signal = run.gradingSignal;
  if (signal.aborted) return;
  const { base, rows, evaluation, by } = ungraded;
  const began = run.clock();
  try {
    const graded = await gradeRows(evaluation, rows, { signal });
    const error = evaluation.failure?.(graded) ?? null;
    if (error !== null) {
      if (signal.aborted) return;
      await commit(run, failed(run, ungraded, error), graded, { failure: { by, error } });
      return;
    }
    const done = await withResults(run, ungraded, graded);
    if (signal.aborted) return;
    const timing = { ...base.timing, grade_seconds: run.clock() - began };
    await commit(run, { ...done, timing }, graded, { by });
  } catch (error) {
    if (signal.aborted) return;
    await commit(run, failed(run, ungraded, error), rows, { failure: { by, error } });
  }
}

const firingSeed = (run: Run, { phase, id, step }: SnapshotKey) => seedOf(run.seed, phase, id, step);

async function withResults(
  run: Run,
  { base, evaluation, look }: Ungraded,
  rows: readonly Row[],
): Promise<Snapshot> {
  const { metrics, values, primary, plain } = resultsOf(evaluation, rows, firingSeed(run, base));
  const paired = await pairedOf(run, base, metrics, rows, look);
  // Plain keys come first: they cannot take the place of a key of the schema.
  return { ...plain, ...base, metrics: values, primary_metric: primary, paired };
}

function failed(run: Run, { base, evaluation }: Ungraded, error: unknown): Snapshot {
  run.telling.warn(
    `evaluation "${evaluation.name}"`,
    `failed on the rows of "${base.id}" at step ${base.step}: ${errorMessage(error)}`,
  );
  if (run.options.onFailure === "throw") run.toThrow ??= error;
  return { ...base, status: "failed", reason: errorMessage(error) };
}

/** Waits until all grading is done, at most so long. Returns whether it is. */
export async function drainGrading(run: Run, seconds: number): Promise<boolean> {
  if (run.gradings.size === 0) return true;
  const done = Promise.all(run.gradings.values()).then(() => true);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    // setTimeout holds no more than 2³¹ − 1 milliseconds.
    timer = setTimeout(() => resolve(false), Math.min(1000 * seconds, 2 ** 31 - 1));
  });
  const isDone = await Promise.race([done, timeUp]);
  clearTimeout(timer);
  return isDone;
}
