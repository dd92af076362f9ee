import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Json } from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { parseHubSplit, readHubSplit } from "./hub.ts";
import { textFormats } from "./parse-text.ts";
import { readParquet } from "./parquet.ts";
import { abbreviated, dataError, type PlacedRow } from "./rows.ts";
import { utf8Text } from "./utf8.ts";

export interface ReadDocuments {
  /** One or more, in the source's order. */
  readonly rows: readonly PlacedRow[];
  /** SHA-256 of the file's bytes, or of several files concatenated. */
  readonly sha256: string;
  /** Goes into an evaluation's provenance. Contains no path, so that it is the same on another machine. */
  readonly provenance: { readonly [key: string]: Json };
}

/**
 * Reads the rows of a dataset.
 *
 * - A file, by its extension: JSON Lines (`.jsonl`, `.ndjson`), a JSON array of objects (`.json`), CSV with a header (`.csv`;
 *   all values are strings), Parquet (`.parquet`).
 * - `hf:owner/dataset/split` or `hf:owner/dataset/config/split`: a split of a dataset on the Hugging Face hub, from the hub's
 *   Parquet conversion. HF_ENDPOINT selects another hub; HF_TOKEN is sent.
 *
 * @param where The option that names the source, for errors: `gsm8k options.data`.
 * @throws PeriodicEvalError `data` with file and line for a wrong row; also for a source that cannot be read, has another
 *   format, or has no rows.
 */
export async function readDocuments(source: string, where: string): Promise<ReadDocuments> {
  const read = await (source.startsWith("hf:") ? fromHub(source, where) : fromFile(source, where));
  if (read.rows.length > 0) return read;
  throw dataError(source, "no rows", "one or more", "Check that the file was written completely.");
}

async function fromHub(source: string, where: string): Promise<ReadDocuments> {
  const split = parseHubSplit(source.slice("hf:".length));
  if (split !== null) {
    const { rows, sha256, config } = await readHubSplit(split, where);
    const of = { hub: split.dataset, config, split: split.split };
    return { rows, sha256, provenance: { ...of, sha256, rows: rows.length } };
  }
  const expected = "hf:owner/dataset/split, or hf:owner/dataset/config/split";
  throw dataError(where, quoteValue(source), expected, "Use the split's name from its page on the hub.");
}

async function fromFile(path: string, where: string): Promise<ReadDocuments> {
  const ending = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const parse = textFormats[ending];
  if (parse === undefined && ending !== "parquet") {
    const known = [...Object.keys(textFormats), "parquet"].map((one) => `.${one}`).join(", ");
    const fix = "Rename the file to match its format, or convert it.";
    throw dataError(where, abbreviated(quoteValue(path)), `a file that ends in ${known}`, fix);
  }
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    const fix = `Check the path: it is relative to ${process.cwd()}.`;
    throw dataError(where, errorMessage(cause), "a readable file", fix, cause);
  }
  const rows =
    parse === undefined ? await readParquet(bytes, path) : await parse(utf8Text(bytes, path), path);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { rows, sha256, provenance: { sha256, rows: rows.length } };
}
