import { join } from "node:path";
import { fetchSplit, readSplit, type PlacedRow } from "@periodic-eval/data";
import { csvLine, writeOnce } from "@periodic-eval/store";
import { filledTextOf, fourTextsOf, indexOf } from "./row-fields.ts";
import type { DatasetFile } from "./datasets.ts";

/** A split that `downloadDataset` has fetched. */
export interface DownloadedFile {
  /** `hf:owner/dataset/config/split`. */
  readonly source: string;
  /** The written file; without one, the split's folder in the cache. */
  readonly path: string;
  readonly rows: number;
  /** SHA-256 of the split's Parquet files, concatenated. */
  readonly sha256: string;
  readonly commit: string;
}

/**
 * Downloads splits into the cache shared with huggingface_hub, unless they are there, and reads them. With `out`, also writes
 * them as JSON Lines, or as CSV in the format of MMLU, once all of them could be read.
 *
 * @param where Names the dataset in errors.
 * @param out The folder to write to; null for the cache only. A file that exists with the same content stays.
 * @throws PeriodicEvalError as `fetchSplit` and `readSplit` of @periodic-eval/data do; `config` for a file that exists with
 *   other content, `store` for one that cannot be written.
 */
export async function downloadDataset(
  files: readonly DatasetFile[],
  where: string,
  out: string | null = null,
): Promise<readonly DownloadedFile[]> {
  const downloaded: DownloadedFile[] = [];
  const contents = new Map<string, string>();
  for (const { source, path } of files) {
    const split = await fetchSplit(source, { where, path: [], isDownload: true });
    const { rows, sha256 } = await readSplit(split, where);
    const target = out === null ? split.folder : join(out, path);
    if (out !== null) contents.set(target, path.endsWith(".csv") ? mmluCsv(rows) : jsonLines(rows));
    downloaded.push({ source, path: target, rows: rows.length, sha256, commit: split.commit });
  }
  await writeOnce(contents, "--out");
  return downloaded;
}

const jsonLines = (rows: readonly PlacedRow[]): string =>
  rows.map(({ row }) => `${JSON.stringify(row)}\n`).join("");

/** Writes `{question, choices, answer}` with the header of MMLU's own files. */
function mmluCsv(rows: readonly PlacedRow[]): string {
  const lines = rows.map((row) => {
    const question = filledTextOf(row, "question");
    return csvLine([question, ...fourTextsOf(row, "choices"), indexOf(row, "answer", 4)]);
  });
  return ["question,choice0,choice1,choice2,choice3,answer", ...lines, ""].join("\n");
}
