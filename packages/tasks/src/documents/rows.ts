import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";

/** A row of data by its columns or keys. */
export type DataRow = Readonly<Record<string, Json>>;

/** A row, and where it stands: `test.jsonl:3`. */
export interface PlacedRow {
  readonly place: string;
  readonly row: DataRow;
}

/** @throws PeriodicEvalError `data` at `place` for what is no object. */
export function placed(place: string, value: unknown): PlacedRow {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return { place, row: value as DataRow };
  throw badData(
    place,
    abbreviated(quoteValue(value)),
    "an object of names and values",
    "Write one object a row.",
  );
}

export function badData(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix, cause });
}

/** At most 60 characters. */
export const abbreviated = (text: string): string => (text.length > 60 ? `${text.slice(0, 57)}…` : text);
