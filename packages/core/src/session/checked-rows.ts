import { PeriodicEvalError } from "../errors.ts";
import type { AnyEvaluation, MeasureContext, Row } from "../evaluation/types.ts";
import { jsonFault } from "../json.ts";
import type { CallOptions } from "../model/types.ts";
import type { Prepared } from "./preflight.ts";

/** Runs `measure` and checks that rows came back that can be kept, and whose ids can pair two looks. */
export async function measureRows(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  context: MeasureContext,
): Promise<readonly Row[]> {
  // Its needs were checked when it was prepared.
  const rows: unknown = await evaluation.measure(prepared.target as never, prepared.items, context);
  const where = `evaluation "${evaluation.name}" measure`;
  const checked = checkRows(rows, where);
  const owed = rowsOwed(evaluation, prepared);
  if (checked.length <= owed) return checked;
  // Counted as whole, a measurement that was cut short would stand as a baseline.
  throw new PeriodicEvalError({
    code: "data",
    where,
    got: `${checked.length} rows for ${prepared.items.length} items`,
    expected: `at most ${owed}: samplesPerItem is ${evaluation.samplesPerItem ?? 1}`,
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
