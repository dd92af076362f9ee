import { stat } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { badData } from "../documents/rows.ts";

/** A split of a task's data, wherever the data are. */
export interface TaskSplit {
  /** Its files in a folder, in the order in which they are looked for. */
  readonly files: readonly string[];
  /** Behind `hf:owner/dataset/`. */
  readonly hub: string;
}

/** `test.jsonl` and its like; and `config/test-00000-of-00001.parquet`, as a data set is downloaded from the hub. */
export const splitOf = (split: string, config: string, folder = config): TaskSplit => ({
  files: [
    ...["jsonl", "json", "parquet", "csv"].map((ending) => `${split}.${ending}`),
    `${folder}/${split}-00000-of-00001.parquet`,
  ],
  hub: `${config}/${split}`,
});

/**
 * What `readDocuments` reads: a split's file in a folder or at the hub; a file, or a split of the hub, as it is named.
 *
 * @throws PeriodicEvalError `data` where it is not there.
 */
export async function locate(source: string, split: TaskSplit, where: string): Promise<string> {
  if (source.startsWith("hf:")) return isDataset(source) ? `${source}/${split.hub}` : source;
  if ((await kindOf(source, where)) === "file") return source;
  for (const file of split.files) {
    const path = join(source, file);
    if (await exists(path)) return path;
  }
  const [first, ...others] = split.files;
  const expected = `${first}, or one of ${others.join(", ")}`;
  throw badData(
    where,
    `the folder ${source} without it`,
    expected,
    "Name the folder that holds it, or a file.",
  );
}

/** Whether a source holds several splits. */
export async function hasSplits(source: string, where: string): Promise<boolean> {
  return source.startsWith("hf:") ? isDataset(source) : (await kindOf(source, where)) === "folder";
}

/** @throws PeriodicEvalError `config` where examples are asked for and there is nowhere to take them from. */
export function noPool(task: string, shots: number): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: `${task} shots`,
    got: `${shots}, of data without a pool of examples`,
    expected: "a file to draw them from",
    fix: "Name `fewshotPool`, a folder or data set with that split, or `shots: 0`.",
  });
}

/** `hf:owner/dataset`, of which a task knows the splits. */
const isDataset = (source: string): boolean => source.split("/").length === 2;

async function kindOf(path: string, where: string): Promise<"folder" | "file"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (cause) {
    const fix = `Check the path: it is relative to ${process.cwd()}.`;
    throw badData(where, errorMessage(cause), "a folder, a file, or hf:owner/dataset", fix, cause);
  }
}

const exists = async (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
