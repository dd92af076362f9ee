import { existsSync } from "node:fs";
import type { ValuePath } from "@periodic-eval/core";
import { isHubSource } from "@periodic-eval/data";
import { isRecord } from "@periodic-eval/contracts/options";
import { parseLocalJudge } from "@periodic-eval/contracts/options";

type Entry = Readonly<Record<string, unknown>>;

/** Keys of an entry of `evaluations` that name files or folders, in a suite and in a `periodic_eval` block. */
export const entryFileKeys: readonly string[] = [
  "data",
  "fewshot_pool",
  "benchmark",
  "preference",
  "preferences_dir",
  "probes",
  "win_rate",
  "kl_to_reference",
  "answers",
];

/** Keys of an entry of `evaluations` that name models, or files with the answers of one. */
export const entryModelKeys: readonly string[] = ["reference", "model", "adapter", "tokenizer"];

/** Returns the place of a path. `at` is the place of the value within the entry. */
export type ResolveEntryPath = (path: string, at: ValuePath) => string;

/**
 * Returns an entry of `evaluations` with resolved paths, also in its values that are entries or models themselves. Names of
 * datasets and models on the hub and names of shipped preferences stay.
 */
export function resolveEntryPaths(entry: Entry, resolvePath: ResolveEntryPath, at: ValuePath = []): Entry {
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => {
      const here = [...at, key];
      const [isFile, isModel] = [entryFileKeys.includes(key), entryModelKeys.includes(key)];
      const resolveHere = (path: string) => resolvePath(path, here);
      if ((isFile || isModel) && isRecord(value)) return [key, resolveEntryPaths(value, resolvePath, here)];
      if (typeof value !== "string") return [key, value];
      if (key === "judge") return [key, resolveJudgePath(value, resolveHere)];
      if (isFile) return [key, isPath(key, value) ? resolveHere(value) : value];
      return [key, isModel && !value.startsWith("hf:") ? resolveModelPath(value, resolveHere) : value];
    }),
  );
}

/** A preference is a path only if it names a file. */
const isPath = (key: string, value: string): boolean =>
  key === "preference" ? /[\\/]|\.ya?ml$/.test(value) : !isHubSource(value);

/** Resolves a model: an existing folder, otherwise owner/name on the Hub. A leading dot or slash always means a folder. */
export function resolveModelPath(source: string, resolvePath: (path: string) => string): string {
  const path = resolvePath(source);
  const isHubName = /^[\w-][\w.-]*\/[\w.-]+(@\S+)?$/.test(source) && !isAnswersFile(source);
  return existsSync(path) || !isHubName ? path : source;
}

/** Whether a reference is a file or a dataset with answers, and not a model. */
export const isAnswersFile = (reference: string): boolean =>
  /^hf:|\.(jsonl|ndjson|json|parquet)$/i.test(reference);

/** Resolves the folder of a judge that runs in this process. */
export function resolveJudgePath(spec: string, resolvePath: (path: string) => string): string {
  const judge = parseLocalJudge(spec);
  if (judge === null || judge.kind === "hf" || judge.source === "") return spec;
  const { kind, source } = judge;
  const resolved = kind === "folder" ? resolvePath(source) : resolveModelPath(source, resolvePath);
  const query = new URLSearchParams(judge.query).toString();
  return `${kind}:${resolved}${query === "" ? "" : `?${query}`}`;
}
