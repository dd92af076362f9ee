import type { AnyEvaluation, MeasureContext, Row } from "../../contracts/evaluation.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isDeadline } from "../../evaluations/kit/deadline.ts";
import { checkRows } from "../records/check-rows.ts";
import type { Prepared } from "./prepare.ts";

/** Returns how many items to measure next, once `done` are measured; 0 ends the measurement. */
export type Portions = (done: number) => number;

/**
 * Runs `measure` on all items at once or in portions, and checks the rows. If a deadline ends it, the rows measured by then are
 * returned.
 *
 * @throws PeriodicEvalError `data` for wrong rows; whatever the evaluation throws.
 */
export async function measureRows(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  context: MeasureContext,
  portions: Portions = (done) => prepared.items.length - done,
): Promise<readonly Row[]> {
  const where = `evaluation "${evaluation.name}" measure`;
  const { samplesPerItem = 1 } = evaluation;
  const { items, target } = prepared;
  const rows: Row[] = [];
  let done = 0;
  for (let next = portions(0); next > 0; next = portions(done)) {
    const portion = items.slice(done, done + next);
    const before = done;
    const progress = (more: number) => context.progress(before + more);
    let given: unknown;
    try {
      // The model's abilities were checked when the evaluation was prepared.
      given = await evaluation.measure(target as never, portion, { ...context, progress });
    } catch (error) {
      if (isDeadline(context.signal)) break;
      throw error;
    }
    const measured = checkRows(given, where);
    // With too many rows a measurement that was cut short could count as whole, and become a baseline.
    if (measured.length > samplesPerItem * portion.length)
      throw tooManyRows(where, measured.length, portion.length, samplesPerItem);
    rows.push(...measured);
    done += portion.length;
    if (measured.length < samplesPerItem * portion.length || context.signal.aborted) break;
  }
  return checkRows(rows, where);
}

function tooManyRows(where: string, rows: number, items: number, samplesPerItem: number) {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${rows} rows for ${items} items`,
    expected: `at most ${samplesPerItem * items}: samplesPerItem is ${samplesPerItem}`,
    fix: "Set samplesPerItem to the number of rows that measure returns for each item.",
  });
}

/** Returns the number of rows in a whole measurement. */
export function expectedRows(
  { samplesPerItem = 1 }: Pick<AnyEvaluation, "samplesPerItem">,
  { items }: Pick<Prepared, "items">,
): number {
  return samplesPerItem * items.length;
}
