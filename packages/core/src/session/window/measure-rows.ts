import {
  type AnyEvaluation,
  PeriodicEvalError,
  type MeasureContext,
  type Row,
  type SampleRange,
  type Awaitable,
} from "@periodic-eval/contracts";
import { quoteValue } from "@periodic-eval/contracts/options";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import { onYield } from "../../model/event-loop.ts";
import type { Portion } from "../budget/governor.ts";
import { reducesSamples } from "../budget/share-seconds.ts";
import { checkIds, checkRows } from "../records/grading.ts";
import type { Prepared } from "./prepare.ts";
import type { ProgressRecorder } from "./measurement-progress.ts";

export interface RowsRequest {
  readonly evaluation: AnyEvaluation;
  readonly prepared: Prepared;
  /** Names the streams of samples: the same for all measurements of a step. */
  readonly seed: string;
  readonly signal: AbortSignal;
  readonly recorder: ProgressRecorder;
  /** Returns what to measure next, once `done` rows took `seconds`; no rows end the measurement. */
  portion(done: number, seconds: number): Portion;
  /** Starts each call of `measure` and waits for it; `abandon` ends one that does not settle. Default: waits for ever. */
  settle?(heartbeat: { at: number }, call: () => Awaitable<unknown>, abandon: () => void): Awaitable<unknown>;
}

/**
 * Runs `measure` on all items at once or in portions, and checks the rows. If a deadline ends it, the rows measured by then are
 * returned.
 *
 * @throws PeriodicEvalError `data` for wrong rows; whatever the evaluation throws.
 */
export async function measureRows(request: RowsRequest): Promise<readonly Row[]> {
  const { evaluation, prepared, seed, recorder, settle = (_, call) => call() } = request;
  const where = `evaluation "${evaluation.name}" measure`;
  const abandoned = new AbortController();
  const abandon = () => abandoned.abort(new Error("the measurement was abandoned"));
  const signal = AbortSignal.any([request.signal, recorder.signal, abandoned.signal]);
  onYield(signal, (written) => recorder.showProgress({ written }));
  const { concurrentCalls = 1 } = prepared.target;
  const rows: Row[] = [];
  try {
    recorder.begin();
    for (;;) {
      const { rows: next, deadline } = request.portion(rows.length, recorder.seconds);
      if (next <= 0) break;
      recorder.beginPortion(rows.length, deadline);
      const { items, samples } = portionOf(evaluation, prepared.items, rows.length, next);
      const perItem = samples.end - samples.first;
      const before = rows.length;
      const progress = (done: number) => recorder.progress(before + perItem * done);
      const context: MeasureContext = { seed, signal, samples, progress, concurrentCalls };
      let answer: unknown;
      try {
        // The model's abilities were checked when the evaluation was prepared.
        const target = prepared.target as never;
        const call = () => evaluation.measure(target, items, context);
        answer = await settle(recorder.heartbeat, call, abandon);
      } catch (error) {
        if (isDeadline(signal)) break;
        throw error;
      }
      const measured = checkRows(answer, where);
      checkPortion(measured, items, perItem, where);
      // As arguments of one call, more than about 100,000 rows overflow the stack.
      for (const row of measured) rows.push(row);
      if (measured.length < perItem * items.length || signal.aborted) break;
    }
  } finally {
    recorder.end();
  }
  checkIds(rows, where);
  return rows;
}

function checkPortion(rows: readonly Row[], items: readonly Row[], perItem: number, where: string): void {
  // With too many rows a measurement that was cut short could count as whole, and become a baseline.
  if (rows.length > perItem * items.length) throw tooManyRows(where, rows.length, items.length, perItem);
  const stray = rowOfNoItem(rows, items);
  if (stray !== undefined) throw noSuchItem(where, stray, items);
}

/** Returns what the rows from `done` on are: further items with all samples, or further samples of all items. */
function portionOf(
  evaluation: AnyEvaluation,
  items: readonly Row[],
  done: number,
  next: number,
): { readonly items: readonly Row[]; readonly samples: SampleRange } {
  const { samplesPerItem = 1 } = evaluation;
  if (reducesSamples(evaluation) && items.length > 0) {
    const first = done / items.length;
    return { items, samples: { first, end: first + next / items.length } };
  }
  const first = done / samplesPerItem;
  return {
    items: items.slice(first, first + next / samplesPerItem),
    samples: { first: 0, end: samplesPerItem },
  };
}

/** Returns the first row whose id is not an item's id, alone or followed by a separator and anything (`q1#0`). */
function rowOfNoItem(rows: readonly Row[], items: readonly Row[]): Row | undefined {
  const ids = new Set(items.map(({ id }) => id));
  const isOfItem = ({ id }: Row) =>
    ids.has(id) || [...id.matchAll(/[^\p{L}\p{N}]/gu)].some(({ index }) => ids.has(id.slice(0, index)));
  return rows.find((row) => !isOfItem(row));
}

const noSuchItem = (where: string, { id }: Row, items: readonly Row[]) =>
  new PeriodicEvalError({
    code: "data",
    where,
    got: `a row with the id ${quoteValue(id)}, which no item has`,
    expected: `an item's id, alone or before the number of a sample: ${quoteValue(items[0]?.id ?? "q1")}, "${items[0]?.id ?? "q1"}#0"`,
    fix: "Return the item's id with each row; number the samples of one item.",
  });

function tooManyRows(where: string, rows: number, items: number, samplesPerItem: number) {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${rows} rows for ${items} items`,
    expected: `at most ${samplesPerItem * items}: samplesPerItem is ${samplesPerItem}`,
    fix: "Set samplesPerItem to the number of rows that measure returns for each item.",
  });
}
