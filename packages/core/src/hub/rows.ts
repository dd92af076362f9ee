import type { Json } from "../contracts/json.ts";
import { PeriodicEvalError } from "../errors.ts";
import { isRecord } from "../internal/is-record.ts";
import { nearest } from "../internal/nearest.ts";
import { quoteValue } from "../internal/quote-value.ts";

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

/** Returns the `data` error for a wrong row, file or folder at `where`. */
export function dataError(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix, cause });
}

/** Shortens a string to `length` characters. */
export const abbreviated = (text: string, length = 60): string =>
  text.length > length ? `${text.slice(0, length - 3)}…` : text;

/** Returns "Did you mean …?" for the known name nearest to a wrong one; null if no name is near. */
export function didYouMean(name: unknown, known: readonly string[]): string | null {
  const close = typeof name === "string" ? nearest(name, known) : null;
  return close && `Did you mean "${close}"?`;
}

/** Whether a value is a string that is not blank. */
export const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

/** Whether a value is a non-empty array of strings that are not blank. */
export const isFilledList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFilled);
