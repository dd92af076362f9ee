import { dataError, errorMessage } from "@periodic-eval/contracts/options";
import type { Json, SourceOption } from "@periodic-eval/core";
import { readSource, textFormats, type PlacedRow, type ParseText, placed } from "@periodic-eval/data";

export interface ReadDocuments {
  /** One or more, in the source's order. */
  readonly rows: readonly PlacedRow[];
  /** SHA-256 of the file's bytes, or of several files concatenated. */
  readonly sha256: string;
  /** Goes into an evaluation's provenance. Contains no path, so that it is the same on another machine. */
  readonly provenance: { readonly [key: string]: Json };
}

/**
 * Reads the rows of a dataset: a source of `readSource` of @periodic-eval/data, or CSV with a header (`.csv`; all values
 * are strings).
 *
 * @param option The option that names the source, for errors; or only its place.
 * @throws PeriodicEvalError as `readSource` does.
 */
export async function readDocuments(source: string, option: SourceOption | string): Promise<ReadDocuments> {
  const { rows, sha256, hub } = await readSource(source, option, { ...textFormats, csv: parseCsv });
  return { rows, sha256, provenance: { ...hub, sha256, rows: rows.length } };
}

/** Parses RFC 4180 CSV with a header; all values are strings. */
const parseCsv: ParseText = async (text, file) => {
  const { CsvError, parse } = await import("csv-parse/sync");
  let records: readonly { readonly record: unknown; readonly info: { readonly lines: number } }[];
  let header: readonly string[] = [];
  const columns = (names: readonly string[]) => {
    header = names;
    return [...names];
  };
  try {
    records = parse(text, { columns, skip_empty_lines: true, info: true });
  } catch (cause) {
    const line = cause instanceof CsvError ? `:${String(cause["lines"])}` : "";
    const fix = "Close its quotes, and write as many fields as the header has.";
    throw dataError(`${file}${line}`, errorMessage(cause), "a record of a CSV file", fix, cause);
  }
  const seen = new Set<string>();
  const twice = header.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined)
    throw dataError(
      `${file}:1`,
      `the column ${JSON.stringify(twice)} twice`,
      "columns that differ",
      "Rename one of them.",
    );
  return records.map(({ record, info }) => placed(`${file}:${info.lines}`, record));
};
