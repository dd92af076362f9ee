import type * as z from "zod";
import { PeriodicEvalError, type SourceOption, type ValuePath, type Json } from "@periodic-eval/contracts";
import { isRowSource, readSource } from "@periodic-eval/data";
import { pathText, parseOptions } from "@periodic-eval/contracts/options";
import { readYaml, sha256 } from "./data-file.ts";

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
    return { value, placeOf: placesIn(source), provenance: { file_sha256: await sha256(text) } };
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
