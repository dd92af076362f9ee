import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Json } from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { parseHubSplit, readHubSplit } from "./hub.ts";
import { textFormats } from "./parse-text.ts";
import { readParquet } from "./parquet.ts";
import { abbreviated, badData, type PlacedRow } from "./rows.ts";
import { utf8Text } from "./utf8.ts";

export interface ReadDocuments {
  /** In the source's order, one or more. */
  readonly rows: readonly PlacedRow[];
  /** Of the file's bytes; of several files one after the other. */
  readonly sha256: string;
  /** What an evaluation's provenance says of them; no path, so that it is the same on another machine. */
  readonly provenance: { readonly [key: string]: Json };
}

/**
 * The rows of a data set.
 *
 * - A file, by its ending: JSON Lines (`.jsonl`, `.ndjson`), a JSON list of objects (`.json`), CSV with a header (`.csv`; all
 *   values are texts), Parquet (`.parquet`).
 * - `hf:owner/dataset/split` or `hf:owner/dataset/config/split`: a split of a data set on the Hugging Face hub, as the hub
 *   converts it to Parquet; from HF_ENDPOINT where it is set, with HF_TOKEN.
 *
 * @param where names the option that led here: `gsm8k.data`
 * @throws PeriodicEvalError `data` with file and line for a row that is wrong; for a source that cannot be read, is of
 *   another kind, or has no row.
 */
export async function readDocuments(source: string, where: string): Promise<ReadDocuments> {
  const read = await (source.startsWith("hf:") ? fromHub(source, where) : fromFile(source, where));
  if (read.rows.length > 0) return read;
  throw badData(source, "no row", "one or more", "Check that the file was written whole.");
}

async function fromHub(source: string, where: string): Promise<ReadDocuments> {
  const split = parseHubSplit(source.slice("hf:".length));
  if (split !== null) {
    const { rows, sha256, config } = await readHubSplit(split, where);
    const of = { hub: split.dataset, config, split: split.split };
    return { rows, sha256, provenance: { ...of, sha256, rows: rows.length } };
  }
  const expected = "hf:owner/dataset/split, or hf:owner/dataset/config/split";
  throw badData(where, quoteValue(source), expected, "Name the split as its page on the hub does.");
}

async function fromFile(path: string, where: string): Promise<ReadDocuments> {
  const ending = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const parse = textFormats[ending];
  if (parse === undefined && ending !== "parquet") {
    const known = [...Object.keys(textFormats), "parquet"].map((one) => `.${one}`).join(", ");
    const fix = "Rename the file by what it holds, or convert it.";
    throw badData(where, abbreviated(quoteValue(path)), `a file that ends in ${known}`, fix);
  }
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    const fix = `Check the path: it is relative to ${process.cwd()}.`;
    throw badData(where, errorMessage(cause), "a readable file", fix, cause);
  }
  const rows =
    parse === undefined ? await readParquet(bytes, path) : await parse(utf8Text(bytes, path), path);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { rows, sha256, provenance: { sha256, rows: rows.length } };
}
