import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { Json } from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { badData, placed, type PlacedRow } from "./rows.ts";

/**
 * The rows of a Parquet file in their order, as JSON holds them: whole numbers of 64 bits as numbers, times as ISO 8601,
 * what is missing as null. Pages may be uncompressed or compressed by snappy, gzip or brotli.
 *
 * @throws PeriodicEvalError `data` for a file that cannot be read, or a value that JSON cannot hold.
 */
export async function readParquet(bytes: Uint8Array, file: string): Promise<readonly PlacedRow[]> {
  const { parquetReadObjects } = await import("hyparquet");
  const whole = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  let rows: readonly Record<string, unknown>[];
  try {
    rows = await parquetReadObjects({ file: whole, compressors });
  } catch (cause) {
    const fix = "Check that the file is whole, and compressed by snappy, gzip or brotli if at all.";
    throw badData(file, errorMessage(cause), "a Parquet file", fix, cause);
  }
  return rows.map((row, at) => {
    const place = `${file} row ${at}`;
    return placed(place, jsonOf(row, place));
  });
}

/** The reader brings snappy itself. */
const compressors = {
  GZIP: (bytes: Uint8Array, maxOutputLength: number) => gunzipSync(bytes, { maxOutputLength }),
  BROTLI: (bytes: Uint8Array, maxOutputLength: number) => brotliDecompressSync(bytes, { maxOutputLength }),
};

function jsonOf(value: unknown, place: string): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((one) => jsonOf(one, place));
  if (typeof value === "object" && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner, place)]));
  }
  const got = ArrayBuffer.isView(value) ? "bytes" : quoteValue(value);
  throw badData(place, got, "what JSON can hold", "Leave that column out of the file.");
}
