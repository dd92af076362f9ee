import type { Json, SourceOption } from "@periodic-eval/core";
import { parseCsv, readSource, textFormats, type PlacedRow } from "@periodic-eval/data";

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
