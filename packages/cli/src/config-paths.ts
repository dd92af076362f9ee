import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ConfigFile, ValuePath } from "./config-file.ts";

/** Keys of the `periodic_eval` block that name files or folders. */
export const blockFiles = [
  "questions",
  "alignment_questions",
  "leakage_questions",
  "personas",
  "margin",
  "judge_cache",
  "baseline",
] as const;

/** Options of loggers that name files or folders. */
const logFiles = ["path", "logDir", "runDir"];

/** The path of a file or folder that stands in a configuration. */
export const pathAt = (file: ConfigFile, at: ValuePath, path: string): string =>
  resolve(file.folderOf(at), path);

/** A folder, or else a name of the hub; what begins with a dot or a slash is no name. */
export function modelAt(file: ConfigFile, at: ValuePath, source: string): string {
  const path = pathAt(file, at, source);
  return existsSync(path) || !/^[\w-][\w.-]*\/[\w.-]+(@\S+)?$/.test(source) ? path : source;
}

/** The options of a logger that stand at `at`, their paths absolute. */
export const loggerAt = (
  file: ConfigFile,
  at: ValuePath,
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> => withPaths(file, at, options, logFiles);

/** The `periodic_eval` block that stands at `at`, its paths absolute, those of its phases too. */
export function blockAt(
  file: ConfigFile,
  at: ValuePath,
  block: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { phases } = block;
  const whole = withPaths(file, at, block, blockFiles);
  if (!isMap(phases)) return whole;
  const ofPhases = Object.entries(phases).map(([name, one]) => [
    name,
    isMap(one) ? withPaths(file, [...at, "phases", name], one, blockFiles) : one,
  ]);
  return { ...whole, phases: Object.fromEntries(ofPhases) };
}

const withPaths = (
  file: ConfigFile,
  at: ValuePath,
  map: Readonly<Record<string, unknown>>,
  keys: readonly string[],
) =>
  Object.fromEntries(
    Object.entries(map).map(([key, value]) => [
      key,
      keys.includes(key) && typeof value === "string" && !isWord(key, value)
        ? pathAt(file, [...at, key], value)
        : value,
    ]),
  );

/** A baseline without a separator is no path: made one, a misspelt word would be a folder that is missing. */
const isWord = (key: string, value: string): boolean => key === "baseline" && !/[\\/]/.test(value);

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
