import type { Json } from "@periodic-eval/contracts";
import { dataError, shellWord, isRecord, abbreviated, quoteValue } from "@periodic-eval/contracts/options";

/** A row of data, by column or key. */
export type DataRow = Readonly<Record<string, Json>>;

/** A row and its place: `test.jsonl:3`. */
export interface PlacedRow {
  readonly place: string;
  readonly row: DataRow;
}

/**
 * Returns `value` as a row.
 *
 * @throws PeriodicEvalError `data` at `place` if `value` is not an object.
 */
export function placed(place: string, value: unknown): PlacedRow {
  if (isRecord(value)) return { place, row: value as DataRow };
  throw dataError(
    place,
    abbreviated(quoteValue(value)),
    "an object of names and values",
    "Write one object per row.",
  );
}

/** Columns that hold all rows in files whose rows `datasets` reads with `field=`. */
const wrappers = /^(data|rows|examples|instances|items|records|samples|train|validation|test)$/;

/**
 * Checks the only value of a JSON file: it may be an object with the rows in one of its values.
 *
 * @throws PeriodicEvalError `data` for such an object.
 */
export function checkOnlyRow(file: string, value: unknown): void {
  const entries = isRecord(value) ? Object.entries(value) : [];
  const [name, rows] =
    entries.find(
      ([key, inner]) => wrappers.test(key) && Array.isArray(inner) && inner.some((row) => isRecord(row)),
    ) ?? [];
  if (name === undefined) return;
  throw dataError(
    file,
    `one object whose ${JSON.stringify(name)} holds ${(rows as readonly unknown[]).length} objects`,
    "one object per row",
    `Write the array alone into a file: jq .${name} ${shellWord(file)}. In Python: json.load(file)["${name}"].`,
  );
}
