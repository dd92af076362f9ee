import { PeriodicEvalError } from "@periodic-eval/core";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";

/** Keys of the `periodic_eval` block that name files or folders. */
const blockFiles = [
  "questions",
  "alignment_questions",
  "leakage_questions",
  "personas",
  "margin",
  "judge_cache",
  "baseline",
] as const;

/** Keys of the entries of its `evaluations` that do. */
const evaluationFiles = ["data", "fewshot_pool", "benchmark", "preference", "preferences_dir", "probes"];

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
  const whole = withBlockPaths(file, at, block);
  if (!isMap(phases)) return whole;
  const ofPhases = Object.entries(phases).map(([name, one]) => [
    name,
    isMap(one) ? withBlockPaths(file, [...at, "phases", name], one) : one,
  ]);
  return { ...whole, phases: Object.fromEntries(ofPhases) };
}

function withBlockPaths(file: ConfigFile, at: ValuePath, block: Readonly<Record<string, unknown>>) {
  const { evaluations, ...own } = withPaths(file, at, block, blockFiles);
  if (evaluations === undefined) return own;
  const absolute = Array.isArray(evaluations)
    ? (evaluations as readonly unknown[]).map((one, i) =>
        isMap(one) ? withPaths(file, [...at, "evaluations", i], one, evaluationFiles) : one,
      )
    : evaluations;
  return { ...own, evaluations: absolute };
}

/** Where in a block the key is whose file an error names, in one of those phases or for all; empty where none is. */
export function blockErrorPath(block: unknown, phases: readonly string[], error: unknown): ValuePath {
  const said = PeriodicEvalError.is(error) ? `${error.where} ${error.got}` : "";
  // The file, or one in that folder; not another whose name goes on.
  const names = (value: unknown) =>
    typeof value === "string" &&
    value !== "" &&
    said
      .split(value)
      .slice(1)
      .some((rest) => !/^([\w-]|\.\w)/.test(rest));
  const ofPhases = isMap(block) && isMap(block["phases"]) ? block["phases"] : {};
  for (const phase of phases) {
    const own = pathNaming(ofPhases[phase], names);
    if (own !== null) return ["phases", phase, ...own];
  }
  return pathNaming(block, names) ?? [];
}

/** Where in a block what names that file stands; null where nothing does. */
function pathNaming(block: unknown, names: (value: unknown) => boolean): ValuePath | null {
  if (!isMap(block)) return null;
  const key = blockFiles.find((one) => names(block[one]));
  if (key !== undefined) return [key];
  const { evaluations } = block;
  for (const [i, one] of (Array.isArray(evaluations) ? (evaluations as readonly unknown[]) : []).entries()) {
    const own = isMap(one) ? evaluationFiles.find((name) => names(one[name])) : undefined;
    if (own !== undefined) return ["evaluations", i, own];
  }
  return null;
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

/**
 * A baseline without a separator is no path: made one, a misspelt word would be a folder that is missing. A preference is one
 * where it is named by its file. Data may be a data set of the hub.
 */
const isWord = (key: string, value: string): boolean => {
  if (key === "baseline") return !/[\\/]/.test(value);
  if (key === "preference") return !/[\\/]|\.ya?ml$/.test(value);
  return evaluationFiles.includes(key) && value.startsWith("hf:");
};

/** What stands at that path; undefined where nothing does. */
export const valueAt = (value: unknown, path: ValuePath): unknown =>
  path.reduce<unknown>(
    (of, key) => (of as Record<string | number, unknown> | null | undefined)?.[key],
    value,
  );

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
