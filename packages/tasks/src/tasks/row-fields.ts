import {
  abbreviated,
  dataError,
  isCount,
  isFilled,
  isFilledList,
  isRecord,
  quoteValue,
} from "@periodic-eval/contracts/options";
import { type PlacedRow } from "@periodic-eval/data";

/**
 * Returns the value of a column.
 *
 * @param expected A noun phrase for errors.
 * @throws PeriodicEvalError `data` at the row's place if `is` rejects the value.
 */
export function fieldOf<T>(
  { place, row }: PlacedRow,
  name: string,
  expected: string,
  is: (value: unknown) => value is T,
): T {
  const value: unknown = row[name];
  if (is(value)) return value;
  const columns = Object.keys(row).join(", ") || "none";
  const got =
    name in row ? `${name} = ${abbreviated(quoteValue(value))}` : `no ${name} (columns: ${columns})`;
  throw dataError(place, got, `${name}: ${expected}`, "Correct that row, or leave it out.");
}

export const textOf = (row: PlacedRow, name: string): string => fieldOf(row, name, "a string", isText);

export const filledTextOf = (row: PlacedRow, name: string): string =>
  fieldOf(row, name, "a non-empty string", isFilled);

export const filledTextsOf = (row: PlacedRow, name: string): readonly string[] =>
  fieldOf(row, name, "one or more non-empty strings", isFilledList);

/** Returns the choices of a question of MMLU. */
export const fourTextsOf = (row: PlacedRow, name: string): readonly string[] =>
  fieldOf(
    row,
    name,
    "four strings",
    (value): value is string[] => Array.isArray(value) && value.length === 4 && value.every(isText),
  );

/** Returns an integer from 0 to `count` − 1; accepts strings, which CSV has. */
export function indexOf(row: PlacedRow, name: string, count: number): number {
  const isIndex = (value: unknown): value is number | string =>
    (typeof value === "number" || isFilled(value)) && isCount(Number(value)) && Number(value) < count;
  return Number(fieldOf(row, name, `0 to ${count - 1}`, isIndex));
}

/** Returns a column that holds an object, as a row. */
export const objectOf = (row: PlacedRow, name: string): PlacedRow => ({
  place: row.place,
  row: fieldOf(row, name, "an object", (value): value is PlacedRow["row"] => isRecord(value)),
});

const isText = (value: unknown): value is string => typeof value === "string";
