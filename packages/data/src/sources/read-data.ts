import type * as z from "zod";
import { PeriodicEvalError, type SourceOption, type ValuePath, type Json } from "@periodic-eval/contracts";
import {
  atOption,
  changedError,
  dataError,
  optionAt,
  parseOptions,
  pathText,
  quoteValue,
} from "@periodic-eval/contracts/options";
import { createHash } from "@periodic-eval/store/platform";
import { readTextFile } from "@periodic-eval/store";
import { fixForMissing, isMissingFile, withDownload } from "../rows/missing-source.ts";
import { parseJson } from "../rows/parse-text.ts";
import { parseYamlText, type YamlText } from "../rows/parse-yaml.ts";
import { isRowSource } from "./datasets.ts";
import { readSource } from "./read-source.ts";

/** The content of a source. */
export interface SourceData {
  /** The value of a YAML or JSON file, or the array of rows of JSON Lines, Parquet or a dataset. */
  readonly value: unknown;
  /** Returns the place of a part of the value, for errors: `personas.yaml[2].id`, `personas.jsonl:3.id`. */
  readonly placeOf: PlaceOf;
  /** `file_sha256`, and for a dataset on the hub its name, config, split and commit. */
  readonly provenance: { readonly [key: string]: Json };
}

export type PlaceOf = (path: ValuePath) => string;

/** Places the parts of a value that one file or one option holds. */
export const placesIn =
  (where: string): PlaceOf =>
  (path) =>
    `${where}${pathText(path)}`;

/**
 * Reads a YAML or JSON file, or the rows of JSON Lines (`.jsonl`, `.ndjson`), Parquet (`.parquet`) or a dataset on the
 * Hugging Face hub (`hf:owner/dataset[/config][/split]`).
 *
 * @param option The option that holds the source, for errors; or only its place.
 * @throws PeriodicEvalError `data` for a source that cannot be read or parsed.
 */
export async function readData(source: string, option: SourceOption | string): Promise<SourceData> {
  if (!isRowSource(source)) {
    const { value, text } = await readYaml(source, option);
    return { value, placeOf: placesIn(source), provenance: { file_sha256: sha256(text) } };
  }
  const { rows, sha256: hash, hub } = await readSource(source, option);
  return {
    value: rows.map(({ row }) => row),
    placeOf: ([at, ...path]) =>
      typeof at === "number" ? `${rows[at]!.place}${pathText(path)}` : `${source}${pathText(path)}`,
    provenance: { ...hub, file_sha256: hash },
  };
}

/**
 * Checks the content of a source against a schema, as `parseOptions` checks options.
 *
 * @param placeOf Places errors: `<file>[0].id`.
 * @throws PeriodicEvalError `data` for the first wrong value.
 */
export function parseData<S extends z.ZodType>(placeOf: PlaceOf, schema: S, value: unknown): z.output<S> {
  try {
    return parseOptions("", schema, value);
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const { path, got, expected, fix } = error;
    throw new PeriodicEvalError({ code: "data", where: placeOf(path), path, got, expected, fix });
  }
}

/**
 * Reads a YAML or JSON (`.json`) file and returns its parsed value, its text and the lines of its parts. A key that occurs twice in an object is an error.
 *
 * @param option The option that holds the path, for the error of an unreadable file; or only its place.
 * @throws PeriodicEvalError `data`, with the line of the syntax error; the error of `readTextFile` for an unreadable file.
 */
export async function readYaml(
  path: string,
  option: SourceOption | string,
): Promise<Pick<YamlText, "value" | "lineOf"> & { readonly text: string }> {
  const text = await readSourceText(path, option);
  if (/\.json$/i.test(path))
    try {
      const lineOf: YamlText["lineOf"] = (part) => parseYamlText(text, path).lineOf(part);
      return { value: parseJson(text, path, ""), text, lineOf };
    } catch {
      // The parser of YAML names the line of the fault.
    }
  const { value, lineOf } = parseYamlText(text, path);
  return { value, text, lineOf };
}

/**
 * Reads a text file of any extension, or joins the field `text` of the rows of JSON Lines, Parquet or a dataset on the hub, each of
 * which ends a line.
 *
 * @param option The option that holds the source, for errors; or only its place.
 * @throws PeriodicEvalError `data` for a source that cannot be read, or a row without text.
 */
export async function readText(
  source: string,
  option: SourceOption | string,
): Promise<{ readonly text: string } & Pick<SourceData, "provenance">> {
  if (!isRowSource(source)) {
    const text = await readSourceText(source, option);
    return { text, provenance: { file_sha256: sha256(text) } };
  }
  const { rows, sha256: hash, hub } = await readSource(source, option);
  const lines = rows.map(({ row, place }) => {
    const { text } = row;
    if (typeof text === "string") return text.endsWith("\n") ? text : `${text}\n`;
    const fix = "Name a text file, or rows { text: string }.";
    throw dataError(`${place}.text`, quoteValue(text), "a string", fix);
  });
  return { text: lines.join(""), provenance: { ...hub, file_sha256: hash } };
}

/** Reads a text file. The error of a missing one names the dataset on the hub that may be meant. */
export async function readSourceText(path: string, option: SourceOption | string): Promise<string> {
  const read = atOption(option, () => readTextFile(path, optionAt(option).where));
  return read.catch((error: unknown) => {
    if (!PeriodicEvalError.is(error) || !isMissingFile(error)) throw error;
    throw changedError(error, { fix: withDownload(path, fixForMissing(path, error.fix)) });
  });
}

/** Returns the SHA-256 of a string's UTF-8 bytes in hexadecimal. */
export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
