import {
  betley2025Questions,
  readAlignmentQuestions,
  fetchPinnedFile,
  pinnedPath,
  pinnedUrl,
} from "@periodic-eval/data";
import { readIfPresent, writeOnce } from "@periodic-eval/store";
import { basename, dirname, join } from "node:path";
import type { DownloadedFile, TaskDataset } from "@periodic-eval/tasks";

/** Lists the questions of Betley et al. beside the datasets of tasks. Makes no request. */
export async function listedQuestions(): Promise<
  TaskDataset & { readonly cachedFiles: number; readonly folder: string | null }
> {
  const { name, repository, path, licence } = betley2025Questions;
  const place = pinnedPath(betley2025Questions);
  const isCached = (await readIfPresent(place)) !== null;
  return {
    name,
    source: `github:${repository}`,
    licence,
    usedBy: ["alignment"],
    documents: 24,
    examples: 0,
    files: [{ source: pinnedUrl(betley2025Questions), path: `${name}/${basename(path)}` }],
    cachedFiles: isCached ? 1 : 0,
    folder: isCached ? dirname(place) : null,
  };
}

/**
 * Downloads the questions of Betley et al. into the cache, and writes them into `out` unless that is null.
 *
 * @throws PeriodicEvalError as `fetchPinnedFile`; `config` for a file in `out` that exists with other content.
 */
export async function getPublishedQuestions(where: string, out: string | null): Promise<DownloadedFile> {
  const file = betley2025Questions;
  const { name, sha256, commit, path: inRepository } = file;
  const { questions } = await readAlignmentQuestions(name, where);
  const path = out === null ? pinnedPath(file) : join(out, name, basename(inRepository));
  if (out !== null) await writeOnce(new Map([[path, await fetchPinnedFile(file, where)]]), "--out");
  return { source: pinnedUrl(file), path, rows: questions.length, sha256, commit };
}
