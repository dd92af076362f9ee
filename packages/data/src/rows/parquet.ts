import type { Json } from "@periodic-eval/contracts";
import { quoteValue, dataError } from "@periodic-eval/contracts/options";
import { decodeParquet } from "#decode-parquet";
import { placed, type PlacedRow } from "./rows.ts";

/**
 * Reads the rows of a Parquet file as JSON, in the file's order: integers beyond 2⁵³ become strings of their digits, times ISO
 * 8601 strings, missing values, NaN and infinite numbers null.
 *
 * @param file Names the file in errors.
 * @throws PeriodicEvalError `data` for a file that cannot be decoded, text that is not UTF-8, or a value that JSON cannot hold.
 */
export async function readParquet(path: string, file: string): Promise<readonly PlacedRow[]> {
  const rows: PlacedRow[] = [];
  for await (const { value, invalidText } of decodeParquet(path, file)) {
    const place = `${file} row ${rows.length}`;
    if (invalidText !== null)
      throw dataError(place, invalidText, "text in UTF-8", "Convert the text to UTF-8.");
    rows.push(placed(place, jsonOf(value, place)));
  }
  return rows;
}

function jsonOf(value: unknown, place: string): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") return String(value);
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
  if (Array.isArray(value)) return value.map((one) => jsonOf(one, place));
  if (typeof value === "object" && !ArrayBuffer.isView(value) && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner, place)]));
  }
  const got = ArrayBuffer.isView(value) ? "bytes" : quoteValue(value);
  throw dataError(place, got, "a value that JSON can hold", "Leave that column out of the file.");
}
