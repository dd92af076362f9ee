import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { PeriodicEvalError, SourceOption } from "@periodic-eval/core";
import {
  atOption,
  configError,
  dataError,
  downloadAdvice,
  errorMessage,
  quoteValue,
} from "@periodic-eval/contracts/options";
import { fixForMissing, isMissingFile, isHubSource } from "@periodic-eval/data";
import { datasetOf } from "./datasets.ts";

/** Where a split of a task's data is, in a folder and on the hub. */
export interface TaskSplit {
  /** Possible paths in a folder; the first that exists is used. */
  readonly files: readonly string[];
  /** The part after `hf:owner/dataset/`. */
  readonly hub: string;
}

/** Returns the usual places of a split: `test.jsonl`, …, or `config/test-00000-of-00001.parquet` as downloaded from the hub. */
export const splitOf = (split: string, config: string, folder = config): TaskSplit => ({
  files: [
    ...["jsonl", "json", "parquet", "csv"].map((ending) => `${split}.${ending}`),
    `${folder}/${split}-00000-of-00001.parquet`,
  ],
  hub: `${config}/${split}`,
});

/**
 * Returns the source of a split for `readDocuments`: the split's file in a folder or on the hub. A source that is a file or a
 * split already is returned as it is.
 *
 * @param task The task's name. The errors say how to get its data.
 * @throws PeriodicEvalError `data` if the folder does not contain the split.
 */
export async function locate(
  source: string,
  split: TaskSplit,
  option: SourceOption,
  task: string,
): Promise<string> {
  if (isHubSource(source)) return isDataset(source) ? `${source}/${split.hub}` : source;
  return atOption(option, () => locateFile(source, split, option.where, task));
}

async function locateFile(source: string, split: TaskSplit, where: string, task: string): Promise<string> {
  if ((await kindOf(source, where, task)) === "file") return source;
  for (const file of split.files) {
    const path = join(source, file);
    if (existsSync(path)) return path;
  }
  const [first, ...rest] = split.files;
  const expected = `${first}, or one of ${rest.join(", ")}`;
  throw dataError(
    where,
    `the folder ${source}, which does not contain the split`,
    expected,
    withAdvice("Name the folder that contains it, or a file.", task, source),
  );
}

/** Whether a source contains several splits. */
export async function hasSplits(source: string, option: SourceOption, task: string): Promise<boolean> {
  if (isHubSource(source)) return isDataset(source);
  return atOption(option, async () => (await kindOf(source, option.where, task)) === "folder");
}

/** @param source The place of the data, for a command that writes it there. */
function withAdvice(fix: string, task: string, source: string): string {
  const dataset = datasetOf(task);
  if (dataset === null) return fix;
  const folder = basename(source) === dataset.name ? dirname(source) : undefined;
  return `${fix} ${downloadAdvice(dataset, folder)}`;
}

/** Returns the error for few-shot examples without a pool. */
export function noPool(task: string, shots: number): PeriodicEvalError {
  return configError({
    where: `${task} options`,
    path: ["shots"],
    got: `${shots} without a pool of examples`,
    expected: "a pool to draw examples from",
    fix: "Set `fewshotPool` to a folder or dataset with that split, or set `shots: 0`.",
  });
}

/** Whether a source is `hf:owner/dataset`, whose splits the task knows. */
const isDataset = (source: string): boolean => source.split("/").length === 2;

async function kindOf(path: string, where: string, task: string): Promise<"folder" | "file"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (cause) {
    const fix = withAdvice(
      fixForMissing(path, `Check the path: it is relative to ${process.cwd()}.`),
      task,
      path,
    );
    const got = isMissingFile(cause) ? `${quoteValue(path)}, which does not exist` : errorMessage(cause);
    throw dataError(where, got, "a folder, a file, or hf:owner/dataset", fix, cause);
  }
}
