import { decodeParquet } from "#parquet-process";
import type { Json, SourceOption } from "@periodic-eval/contracts";
import { dataError, abbreviated, quoteValue, atOption, optionAt } from "@periodic-eval/contracts/options";
import { unreadable, utf8Text } from "@periodic-eval/store";
import { access, createHash, process, readFile, realpath } from "@periodic-eval/store/platform";
import { joinBytes } from "../http/fetch-bounded.ts";
import { fixForMissing, withDownload } from "../rows/missing-source.ts";
import { textFormats, type ParseText } from "../rows/parse-text.ts";
import { type PlacedRow, placed } from "../rows/rows.ts";
import { unpack } from "../rows/unpack.ts";
import { isHubSource, fetchSplit, type DatasetSplit, type SplitFile } from "./datasets.ts";

export interface SourceRows {
  /** One or more, in the source's order. */
  readonly rows: readonly PlacedRow[];
  /** SHA-256 of the file's bytes, or of several files concatenated. */
  readonly sha256: string;
  /** The dataset that holds the rows, or null for a file. Contains no path, so that it is the same on another machine. */
  readonly hub: HubProvenance | null;
}

export type HubProvenance = Readonly<Record<"hub" | "config" | "split" | "commit", Json>>;

/**
 * Reads the rows of a source.
 *
 * - A file, by its extension: JSON (`.json`, `.jsonl`, `.ndjson`), whose content decides between an array of objects and JSON
 *   Lines, or Parquet (`.parquet`). Text files may be gzip files (`.jsonl.gz`).
 * - `hf:owner/dataset[/config][/split]`: a split of a dataset on the Hugging Face hub; see `fetchSplit`.
 *
 * @param option The option that names the source, for errors; or only its place.
 * @param formats Parsers of text files, by extension.
 * @param usualSplits The splits of a hub source that names none, in order of preference. Default: `test`.
 * @throws PeriodicEvalError `data` with file and line for a wrong row; also for a source that cannot be read, has another
 *   format, or has no rows; the errors of `fetchSplit`.
 */
export async function readSource(
  source: string,
  option: SourceOption | string,
  formats: Readonly<Record<string, ParseText>> = textFormats,
  usualSplits?: readonly string[],
): Promise<SourceRows> {
  if (isHubSource(source))
    return readSplit(await atOption(option, () => fetchSplit(source, option, usualSplits)), option);
  return withRows(source, await fromFile(source, option, formats));
}

/**
 * Reads the rows of a split in the cache.
 *
 * @param option The option that names the split, for errors; or only its place.
 * @throws PeriodicEvalError `data` for a file that cannot be read or differs from the hub's, or if there are no rows.
 */
export async function readSplit(
  { dataset, config, split, commit, files }: DatasetSplit,
  option: SourceOption | string,
): Promise<SourceRows> {
  const rows: PlacedRow[] = [];
  const hash = createHash("sha256");
  for (const file of files) {
    const bytes = await atOption(option, () => readCached(file, optionAt(option).where));
    hash.update(bytes);
    for (const row of await readParquet(file.path, `hf:${dataset}/${file.name}`)) rows.push(row);
  }
  const hub = { hub: dataset, config, split, commit };
  return withRows(`hf:${dataset}/${config}/${split}`, { rows, sha256: hash.digest("hex"), hub });
}

function withRows(source: string, read: SourceRows): SourceRows {
  if (read.rows.length > 0) return read;
  throw dataError(source, "no rows", "one or more", "Check that the file was written completely.");
}

async function readCached(file: SplitFile, where: string): Promise<Uint8Array> {
  const bytes = await readBytes(file.path, where);
  await checkCached(file, createHash("sha256").update(bytes).digest("hex"), where);
  return bytes;
}

/**
 * Checks a file of the cache: a disk or another program may have changed it since its download.
 *
 * @param found The SHA-256 of its bytes.
 * @throws PeriodicEvalError `data` if it is not the one that the hub lists.
 */
export async function checkCached({ path, hash }: SplitFile, found: string, where: string): Promise<void> {
  if (hash.length !== 64 || found === hash) return;
  const file = await realpath(path);
  throw dataError(
    where,
    `${file} with the SHA-256 ${found}`,
    `the ${hash} that the hub lists`,
    "Delete this file and run it again: it is downloaded again.",
  );
}

async function fromFile(
  path: string,
  option: SourceOption | string,
  formats: Readonly<Record<string, ParseText>>,
): Promise<SourceRows> {
  const parse = formats[extensionOf(path)];
  const bytes = await atOption(option, () => bytesOf(path, optionAt(option).where, formats));
  const rows =
    parse === undefined ? await readParquet(path, path) : await parse(await textOf(bytes, path), path);
  return { rows, sha256: createHash("sha256").update(bytes).digest("hex"), hub: null };
}

async function textOf(bytes: Uint8Array, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of unpack(onlyChunk(bytes), path)) chunks.push(chunk);
  const size = chunks.reduce((sum, { length }) => sum + length, 0);
  return utf8Text(joinBytes(chunks, size), path);
}

async function* onlyChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  if (bytes.length > 0) yield bytes;
}

async function bytesOf(
  path: string,
  where: string,
  formats: Readonly<Record<string, ParseText>>,
): Promise<Uint8Array> {
  const ending = extensionOf(path);
  if (formats[ending] === undefined && ending !== "parquet") {
    const known = [...Object.keys(formats), "parquet"].map((name) => `.${name}`).join(", ");
    const rename = "Rename the file to match its format, or convert it.";
    // The cause says whether the file exists: a configuration then suggests the dataset that was meant.
    const cause = await access(path).then(
      () => null,
      (error: unknown) => error,
    );
    const fix = cause === null ? rename : withDownload(path, fixForMissing(path, rename));
    throw dataError(where, abbreviated(quoteValue(path)), `a file that ends in ${known}`, fix, cause);
  }
  return readBytes(path, where);
}

/** Returns the file's format: `jsonl` for `rows.jsonl.gz`. */
const extensionOf = (path: string): string => /\.(\w+?)(?:\.gz)?$/i.exec(path)?.[1]?.toLowerCase() ?? "";

async function readBytes(path: string, where: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (cause) {
    const fix = withDownload(path, `Check the path: it is relative to ${process.cwd()}.`);
    throw dataError(where, unreadable(path, cause), "a readable file", fix, cause);
  }
}

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
  if (Array.isArray(value)) return value.map((entry) => jsonOf(entry, place));
  if (typeof value === "object" && !ArrayBuffer.isView(value) && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner, place)]));
  }
  const got = ArrayBuffer.isView(value) ? "bytes" : quoteValue(value);
  throw dataError(place, got, "a value that JSON can hold", "Leave that column out of the file.");
}
