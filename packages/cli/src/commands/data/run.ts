import type { PeriodicEvalError } from "@periodic-eval/core";
import {
  betley2025Questions,
  isPublishedQuestions,
  cachedSplit,
  fetchSplit,
  isHubSource,
  openHubCache,
} from "@periodic-eval/data";
import { configError, didYouMean } from "@periodic-eval/contracts/options";
import {
  datasets,
  downloadDataset,
  type DatasetFile,
  type DownloadedFile,
  type TaskDataset,
} from "@periodic-eval/tasks";
import type { Terminal } from "../../terminal/terminal.ts";
import { getPublishedQuestions, listedQuestions } from "./published-questions.ts";

export interface ListedDataset extends TaskDataset {
  /** Number of its files that the cache holds. */
  readonly cachedFiles: number;
  /** The dataset's folder in the cache; null if no file is there. */
  readonly folder: string | null;
}

/** Lists the datasets of built-in tasks and evaluations. Makes no request. */
export async function listDatasets(): Promise<readonly ListedDataset[]> {
  const ofTasks = await Promise.all(
    datasets.map(async (dataset) => {
      const cachedFiles = (await cachedOf(dataset.files, `data list ${dataset.name}`)).length;
      const name = dataset.source.slice("hf:".length);
      const folder = cachedFiles === 0 ? null : openHubCache({ type: "dataset", name }).root;
      return { ...dataset, cachedFiles, folder };
    }),
  );
  return [...ofTasks, await listedQuestions()];
}

async function cachedOf(files: readonly DatasetFile[], where: string): Promise<readonly DatasetFile[]> {
  const cached = await Promise.all(files.map(({ source }) => cachedSplit(source, where)));
  return files.filter((_, at) => cached[at] !== null);
}

export interface Download {
  readonly name: string;
  /** Null if it is not known. */
  readonly licence: string | null;
  readonly files: readonly DownloadedFile[];
}

/**
 * Downloads a dataset into the cache, and writes it into `out` unless that is null.
 *
 * @param name A name of `datasets`, `betley2025`, or `hf:owner/dataset[/config][/split]`.
 * @throws PeriodicEvalError `config` for an unknown name; the errors of `downloadDataset`.
 */
export async function getDataset(name: string, out: string | null, terminal: Terminal): Promise<Download> {
  const where = `data get ${name}`;
  if (isPublishedQuestions(name)) {
    const { licence } = betley2025Questions;
    return { name, licence, files: [await getPublishedQuestions(where, out)] };
  }
  const known = datasets.find((one) => one.name === name) ?? null;
  if (known === null && !isHubSource(name)) throw unknownDataset(name);
  const files = known?.files ?? [await fileOf(name, where)];
  const missing = files.length - (await cachedOf(files, where)).length;
  if (missing > 0) terminal.err(`downloading ${missing} ${missing === 1 ? "split" : "splits"} of ${name}`);
  return { name, licence: known?.licence ?? null, files: await downloadDataset(files, where, out) };
}

async function fileOf(source: string, where: string): Promise<DatasetFile> {
  const { dataset, config, split } = await fetchSplit(source, { where, path: [], isDownload: true });
  const [, name] = dataset.split("/");
  return { source: `hf:${dataset}/${config}/${split}`, path: `${name}/${split}.jsonl` };
}

function unknownDataset(name: string): PeriodicEvalError {
  const names = [...datasets.map((one) => one.name), betley2025Questions.name];
  return configError({
    where: "data get",
    value: name,
    expected: `${names.join(", ")}, or hf:owner/dataset`,
    fix: didYouMean(name, names) ?? "Name one of these.",
  });
}
