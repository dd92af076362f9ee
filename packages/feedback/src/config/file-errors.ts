import type * as z from "zod";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { checked, configError, parseOptions } from "@periodic-eval/contracts/options";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/data/config";

/**
 * Returns the location of a value for an error: file and line, or the name of the override that set it. Omits the value of an
 * override, because it may be a token under a misspelt key.
 */
export const placeIn = (file: ConfigFile, path: ValuePath): string =>
  file.isOverridden(path) ? `override ${path.join(".")}` : file.where(path);

/** Runs `check`, whose errors are about the content of a file. */
export const atFile = <T>(
  file: ConfigFile,
  check: () => T,
  keyOf: (path: ValuePath) => ValuePath = (path) => path,
): T => checked({ where: (path) => placeIn(file, path), pathOf: keyOf }, check);

/**
 * Checks the content of a YAML file against a schema and returns it with the schema's defaults.
 *
 * @param value Default: the content of the file.
 * @param keyOf Maps a path in `value` to its path in the file. Default: the same path.
 * @throws PeriodicEvalError `config` at the file and line of the wrong value.
 */
export const parseFile = <S extends z.ZodType>(
  file: ConfigFile,
  schema: S,
  value: unknown = file.value,
  keyOf?: (path: ValuePath) => ValuePath,
): z.output<S> => atFile(file, () => parseOptions("", schema, value), keyOf);

/**
 * Reads a YAML file that an option names, and checks it against a schema.
 *
 * @param where The configuration key of the path, for errors.
 * @throws PeriodicEvalError `config` for a missing file, or with file and line for wrong content.
 */
export async function readNamedFile<S extends z.ZodType>(
  path: string,
  schema: S,
  { where, expected }: { readonly where: string; readonly expected: string },
): Promise<z.output<S>> {
  if (!existsSync(path))
    throw configError({ where, got: `"${path}", which does not exist`, expected, fix: "Check the path." });
  return parseFile(await readConfigFile(path), schema);
}

const extension = /\.ya?ml$/;

/** Returns the names of a folder's YAML files without their extensions; an empty array if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => extension.test(file))
    .map((file) => file.replace(extension, ""));
}

/** Returns the path of the YAML file with this name in a folder; null if there is none. */
export const yamlFile = (folder: string, name: string): string | null =>
  [`${name}.yaml`, `${name}.yml`].map((file) => join(folder, file)).find(existsSync) ?? null;
