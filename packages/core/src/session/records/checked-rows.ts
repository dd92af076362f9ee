import { PeriodicEvalError } from "../../errors.ts";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import type { AnyEvaluation, MeasureContext, Row } from "../../contracts/evaluation.ts";
import { jsonFault } from "../../internal/json.ts";
import type { CallOptions } from "../../contracts/model.ts";
import type { Prepared } from "../window/preflight.ts";

/** Says how many items to measure next, once `done` are; 0 ends it. */
export type Portions = (done: number) => number;

/**
 * Runs `measure`, on all items at once or in portions, and checks that rows came back that can be kept, and whose ids
 * can pair two looks. A deadline gives those that there are.
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
    const some = items.slice(done, done + next);
    const before = done;
    const progress = (more: number) => context.progress(before + more);
    let given: unknown;
    try {
      // Its needs were checked when it was prepared.
      given = await evaluation.measure(target as never, some, { ...context, progress });
    } catch (error) {
      if (isDeadline(context.signal)) break;
      throw error;
    }
    const measured = checkRows(given, where);
    // Counted as whole, a measurement that was cut short would stand as a baseline.
    if (measured.length > samplesPerItem * some.length) throw tooMany(where, measured, some, samplesPerItem);
    rows.push(...measured);
    done += some.length;
    if (measured.length < samplesPerItem * some.length || context.signal.aborted) break;
  }
  return checkRows(rows, where);
}

function tooMany(where: string, rows: readonly Row[], items: readonly Row[], samplesPerItem: number) {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${rows.length} rows for ${items.length} items`,
    expected: `at most ${samplesPerItem * items.length}: samplesPerItem is ${samplesPerItem}`,
    fix: "Set samplesPerItem to the rows that measure gives for each item.",
  });
}

/** How many rows make a whole measurement. */
export function rowsOwed(
  { samplesPerItem = 1 }: Pick<AnyEvaluation, "samplesPerItem">,
  { items }: Pick<Prepared, "items">,
): number {
  return samplesPerItem * items.length;
}

/** Runs `grade` and checks that every row came back. */
export async function gradeRows(
  evaluation: AnyEvaluation,
  rows: readonly Row[],
  options: CallOptions,
): Promise<readonly Row[]> {
  const where = `evaluation "${evaluation.name}" grade`;
  const graded = checkRows(await evaluation.grade!(rows, options), where);
  const ids = new Set(graded.map(({ id }) => id));
  const lost = rows.find(({ id }) => !ids.has(id));
  if (lost === undefined) return graded;
  throw new PeriodicEvalError({
    code: "data",
    where,
    got: `no row "${lost.id}"`,
    expected: "each measured row, with its grade",
    fix: "Return every row, with null where no grade could be given.",
  });
}

function checkRows(rows: unknown, where: string): readonly Row[] {
  const seen = new Set<unknown>();
  for (const row of Array.isArray(rows) ? (rows as readonly (Partial<Row> | null)[]) : [null]) {
    const id: unknown = row?.id;
    if (typeof id === "string" && id !== "" && !seen.has(id)) {
      seen.add(id);
      continue;
    }
    throw new PeriodicEvalError({
      code: "data",
      where,
      got: !Array.isArray(rows)
        ? typeof rows
        : seen.has(id)
          ? `the row id "${String(id)}" twice`
          : `a row with id ${JSON.stringify(id)}`,
      expected: "a list of rows, each with its own id",
      fix: "Return the item's id with each row; number the samples of one item.",
    });
  }
  for (const row of rows as readonly Row[]) {
    const fault = jsonFault(row);
    if (fault === null) continue;
    throw new PeriodicEvalError({
      code: "data",
      where: `${where}, row "${row.id}"${fault.path}`,
      got: fault.what,
      expected: "what JSON gives back unchanged",
      fix: "Put numbers, texts, booleans, lists and plain objects into rows, and null where there is no number.",
    });
  }
  // As they are read back after a resume.
  return JSON.parse(JSON.stringify(rows)) as readonly Row[];
}
