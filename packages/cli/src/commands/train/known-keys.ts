import type { PeriodicEvalError, ValuePath } from "@periodic-eval/core";
import { periodicEvalJsonSchema } from "@periodic-eval/core/config";
import { type ConfigFile } from "@periodic-eval/data/config";
import { isRecord, nearest, unknownOption, valueAt } from "@periodic-eval/contracts/options";
import { dpoConfigJsonSchema, sftConfigJsonSchema } from "@periodic-eval/trainers";
import * as z from "zod";
import { fileError } from "../../config/config-file.ts";

type Options = Readonly<Record<string, unknown>>;

/** A map in a file: its path, and the keys that it may have. */
export type KnownMap = readonly [path: ValuePath, known: Options];

/**
 * Returns the errors of the unknown keys, and the file with each such key under the name that it was meant to have, so that what it
 * holds is checked too.
 */
export function withMeantKeys(
  file: ConfigFile,
  maps: readonly KnownMap[],
): { readonly file: ConfigFile; readonly errors: readonly PeriodicEvalError[] } {
  const value = structuredClone(file.value);
  const written = new Map<string, string>();
  const errors: PeriodicEvalError[] = [];
  for (const [path, fieldsOfMap] of maps) {
    const map = valueAt(value, path);
    if (!isRecord(map)) continue;
    const known = Object.keys(fieldsOfMap);
    const unknown = Object.keys(map).filter((one) => !known.includes(one));
    if (unknown.length === 0) continue;
    const elsewhere = keysInside(path);
    for (const key of unknown) {
      if (isUnindented(map, key, elsewhere)) continue;
      errors.push(fileError(file, [...path, key], unknownOption(key, known, elsewhere)));
      const meant = nearest(key, known);
      if (meant === null || Object.hasOwn(map, meant)) continue;
      // A value of another type would be a second error about the same line, and keep the rest of the file from being checked.
      if (!hasTypeOf(fieldsOfMap[meant], map[key])) continue;
      (map as Record<string, unknown>)[meant] = map[key];
      written.set([...path, meant].join("."), key);
    }
  }
  const asWritten = (path: ValuePath) =>
    path.map((key, at) => written.get(path.slice(0, at + 1).join(".")) ?? key);
  return {
    errors,
    file: {
      value,
      where: (path) => file.where(asWritten(path)),
      isOverridden: (path) => file.isOverridden(asWritten(path)),
      folderOf: (path) => file.folderOf(asWritten(path)),
    },
  };
}

/** Whether a key belongs into an empty map above it, which is an error of its own: it was to be indented. */
const isUnindented = (map: Options, key: string, elsewhere: readonly string[]): boolean =>
  elsewhere.some((path) => {
    const [home, inner] = path.split(".");
    return inner === key && map[home!] === null;
  });

/** Whether a value has the type that a schema expects; what it holds may be wrong. True for anything but a schema. */
const hasTypeOf = (schema: unknown, value: unknown): boolean =>
  !(schema instanceof z.ZodType) ||
  schema.safeParse(value).error?.issues.every(({ path }) => path.length > 0) !== false;

/** Returns the keys of the maps inside the file's top map or a phase, which are often written outside of them. */
function keysInside([list]: ValuePath): readonly string[] {
  if (list !== undefined && list !== "phases") return [];
  const options = [...optionNames.sft, ...optionNames.dpo].map((key) => `config.${key}`);
  const block = Object.keys(periodicEvalJsonSchema()["properties"] as Options);
  return list === "phases" ? options : [...options, ...block.map((key) => `periodic_eval.${key}`)];
}

/** The options of `config`, by training method. A file has one seed, at its top. */
export const optionNames = {
  sft: namesIn(sftConfigJsonSchema()),
  dpo: namesIn(dpoConfigJsonSchema()),
} as const;

function namesIn(schema: Options): readonly string[] {
  return Object.keys(schema["properties"] as Options).filter((name) => name !== "seed");
}
