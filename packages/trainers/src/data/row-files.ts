import { checkCached, fetchSplit, isHubSource } from "@periodic-eval/data";
import { hashFiles } from "@periodic-eval/store";
import type { RowsOf } from "./bad-rows-file.ts";

export interface RowFile {
  readonly path: string;
  /** Names the file in the places of rows: its path, or `hf:owner/dataset/config/split/0000.parquet`. */
  readonly name: string;
  /** Checks that a download is unchanged. */
  check(): Promise<void>;
}

/** The splits of a dataset on the hub whose source names none. */
const usualSplits = { dataset: ["train"], validation: ["validation", "test"] } as const satisfies Record<
  RowsOf,
  readonly string[]
>;

/**
 * Returns the files of a source in the order of their rows: the file that it names, or a split of a dataset on the hub, after
 * downloading what the cache lacks (`fetchSplit`). Without a split, `hf:owner/dataset` is `train` for training rows, and
 * `validation` or `test` for validation rows.
 *
 * @throws PeriodicEvalError as `fetchSplit`.
 */
export async function filesOf(source: string, of: RowsOf): Promise<readonly RowFile[]> {
  if (!isHubSource(source)) return [{ path: source, name: source, check: async () => {} }];
  const { dataset, files } = await fetchSplit(source, of, usualSplits[of]);
  return files.map((file) => ({
    path: file.path,
    name: `hf:${dataset}/${file.name}`,
    check: async () => checkCached(file, (await hashFiles([file.path])).slice("sha256:".length), of),
  }));
}
