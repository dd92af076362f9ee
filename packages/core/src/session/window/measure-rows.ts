import {
  type AnyEvaluation,
  type MeasureContext,
  type Row,
  type SampleRange,
  type Awaitable,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { quoteValue } from "@periodic-eval/contracts/options";
import { reducesSamples } from "../budget/measurement-size.ts";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import { checkIds, checkRows } from "../records/results.ts";
import type { Prepared } from "./prepare.ts";

/**
 * Runs `measure` on all items at once or in portions, and checks the rows. If a deadline ends it, the rows measured by then are
 * returned.
 *
 * @param portions Returns how many rows to measure next, once `done` are measured; 0 ends the measurement.
 * @param settle Starts each call of `measure` and waits for it.
 * @param context Its `progress` is called with the number of rows so far.
 * @throws PeriodicEvalError `data` for wrong rows; whatever the evaluation throws.
 */
export async function measureRows(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  context: MeasureContext,
  portions = (done: number): number => expectedRows(evaluation, prepared) - done,
  settle = (call: () => Awaitable<unknown>): Awaitable<unknown> => call(),
): Promise<readonly Row[]> {
  const where = `evaluation "${evaluation.name}" measure`;
  const rows: Row[] = [];
  for (let next = portions(0); next > 0; next = portions(rows.length)) {
    const portion = portionOf(evaluation, prepared.items, rows.length, next);
    const { items, samples } = portion;
    const perItem = samples.end - samples.first;
    const before = rows.length;
    const progress = (done: number) => context.progress(before + perItem * done);
    let given: unknown;
    try {
      // The model's abilities were checked when the evaluation was prepared.
      const target = prepared.target as never;
      given = await settle(() => evaluation.measure(target, items, { ...context, samples, progress }));
    } catch (error) {
      if (isDeadline(context.signal)) break;
      throw error;
    }
    const measured = checkRows(given, where);
    // With too many rows a measurement that was cut short could count as whole, and become a baseline.
    if (measured.length > perItem * items.length)
      throw tooManyRows(where, measured.length, items.length, perItem);
    const stray = rowOfNoItem(measured, items);
    if (stray !== undefined) throw noSuchItem(where, stray, items);
    // As arguments of one call, more than about 100,000 rows overflow the stack.
    for (const row of measured) rows.push(row);
    if (measured.length < perItem * items.length || context.signal.aborted) break;
  }
  checkIds(rows, where);
  return rows;
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

export function expectedRows(
  { samplesPerItem = 1 }: Pick<AnyEvaluation, "samplesPerItem">,
  { items }: Pick<Prepared, "items">,
): number {
  return samplesPerItem * items.length;
}
