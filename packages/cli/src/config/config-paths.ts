import { isPublishedQuestions, isHubSource } from "@periodic-eval/data";
import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { isRecord } from "@periodic-eval/contracts/options";
import { resolveEntryPaths, resolveJudgePath, resolveModelPath } from "@periodic-eval/tasks";
import { resolve } from "node:path";

type Options = Readonly<Record<string, unknown>>;

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

/** Keys of the block and of its entries that may also name a dataset on the hub. */
const datasetKeys = [
  "questions",
  "alignment_questions",
  "leakage_questions",
  "personas",
  "margin",
  "data",
  "fewshot_pool",
];

/** Whether the value at a path in a file may be a file or a dataset on the hub. */
export const mayNameDataset = (path: ValuePath): boolean => datasetKeys.includes(String(path.at(-1)));

/** Options of loggers that name files or folders. */
const loggerFiles = ["path", "logDir", "runDir"];

/** Resolves a path that is written at `at` in a file. */
export const resolvePath = (file: ConfigFile, at: ValuePath, path: string): string =>
  resolve(file.folderOf(at), path);

/** Resolves a source of rows: a path, or a dataset on the Hub (`hf:`). */
export const resolveSource = (file: ConfigFile, at: ValuePath, source: string): string =>
  isHubSource(source) ? source : resolvePath(file, at, source);

/** Resolves a model: an existing folder, otherwise owner/name on the Hub. A leading dot or slash always means a folder. */
export const resolveModel = (file: ConfigFile, at: ValuePath, source: string): string =>
  resolveModelPath(source, (path) => resolvePath(file, at, path));

/** Returns a logger's options with absolute paths. */
export const resolveLoggerPaths = (file: ConfigFile, at: ValuePath, options: Options): Options =>
  resolvePaths(file, at, options, loggerFiles);

/** Returns the `periodic_eval` block at `at` with absolute paths, also in its `phases`. */
export function resolveBlockPaths(file: ConfigFile, at: ValuePath, block: Options): Options {
  const { phases } = block;
  const resolved = resolveBlockLevel(file, at, block);
  if (!isRecord(phases)) return resolved;
  const resolvedPhases = Object.entries(phases).map(([name, phase]) => [
    name,
    isRecord(phase) ? resolveBlockLevel(file, [...at, "phases", name], phase) : phase,
  ]);
  return { ...resolved, phases: Object.fromEntries(resolvedPhases) };
}

function resolveBlockLevel(file: ConfigFile, at: ValuePath, block: Options) {
  const { evaluations, ...resolvedFiles } = resolvePaths(file, at, block, blockFiles);
  const { judge_model: judge } = block;
  const others = {
    ...resolvedFiles,
    ...(typeof judge === "string" && {
      judge_model: resolveJudgePath(judge, (path) => resolvePath(file, [...at, "judge_model"], path)),
    }),
  };
  if (evaluations === undefined) return others;
  const resolved = Array.isArray(evaluations)
    ? (evaluations as readonly unknown[]).map((entry, i) =>
        isRecord(entry)
          ? resolveEntryPaths(entry, (path, key) =>
              resolvePath(file, [...at, "evaluations", i, ...key], path),
            )
          : entry,
      )
    : evaluations;
  return { ...others, evaluations: resolved };
}

const resolvePaths = (file: ConfigFile, at: ValuePath, options: Options, keys: readonly string[]) =>
  Object.fromEntries(
    Object.entries(options).map(([key, value]) => [
      key,
      keys.includes(key) && typeof value === "string" && isPath(key, value)
        ? resolvePath(file, [...at, key], value)
        : value,
    ]),
  );

/**
 * A baseline without a separator is a keyword: as a path, a misspelt keyword would be reported as a missing folder. Rows may
 * be a dataset on the Hub (`hf:`), alignment questions published ones.
 */
const isPath = (key: string, value: string): boolean => {
  if (key === "baseline") return /[\\/]/.test(value);
  if (key === "alignment_questions" && isPublishedQuestions(value)) return false;
  return !isHubSource(value);
};

/** Returns the value at a path, or undefined if there is none. */
export const valueAt = (value: unknown, path: ValuePath): unknown =>
  path.reduce<unknown>(
    (inner, key) => (inner as Record<string | number, unknown> | null | undefined)?.[key],
    value,
  );
