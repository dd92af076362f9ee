import { isCount, quoteValue } from "@periodic-eval/core/internal";
import { abbreviated, badData, type PlacedRow } from "../documents/rows.ts";

/** @throws PeriodicEvalError `data` at the row's place, where the value of a column is another. */
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
  throw badData(place, got, `${name}: ${expected}`, "Mend that row, or leave it out.");
}

export const textOf = (row: PlacedRow, name: string): string => fieldOf(row, name, "a text", isText);

export const filledTextOf = (row: PlacedRow, name: string): string =>
  fieldOf(row, name, "a text that is not empty", isFilled);

export const filledTextsOf = (row: PlacedRow, name: string): readonly string[] =>
  fieldOf(row, name, "one or more texts, none empty", isFilledList);

/** A whole number from 0, below `count`; also written as a text, as CSV has it. */
export function indexOf(row: PlacedRow, name: string, count: number): number {
  const isIndex = (value: unknown): value is number | string =>
    (typeof value === "number" || isFilled(value)) && isCount(Number(value)) && Number(value) < count;
  return Number(fieldOf(row, name, `0 to ${count - 1}`, isIndex));
}

/** A column that holds columns. */
export const objectOf = (row: PlacedRow, name: string): PlacedRow => ({
  place: row.place,
  row: fieldOf(row, name, "an object", isObject),
});

const isText = (value: unknown): value is string => typeof value === "string";
const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";
const isFilledList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFilled);
const isObject = (value: unknown): value is PlacedRow["row"] =>
  typeof value === "object" && value !== null && !Array.isArray(value);
