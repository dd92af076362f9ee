import { aboutOption, configError, dataError, errorMessage } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { decodeParquet, isHubSource, parseDatasetName, checkCached, fetchSplit } from "@periodic-eval/data";
import { hashFiles } from "@periodic-eval/store";
import { accessSync, constants, process, statSync } from "@periodic-eval/store/platform";
import { type BadRow, badRowError, describeValue, isBadRow, type RowsOf } from "./bad-row.ts";
import { jsonRows, type Marked, type SourceRow } from "./json-rows.ts";
import { chatColumns } from "./messages.ts";

/**
 * A file of rows, Parquet if its name ends in `.parquet`, else JSON Lines (UTF-8, one row per line) or a JSON array of rows,
 * which may be a gzip file; a dataset on the Hugging Face hub, `hf:owner/dataset[/config][/split]`; or the rows. A hub source without a split is `train` for training rows, and
 * `validation` or `test` for validation rows; HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE apply.
 */
export type RowSource<Row> = string | readonly Row[];

export interface ReadRowsOptions {
  /** Maximum bytes per line of JSON Lines. Default 16 MiB; a parsed line can take forty times its bytes. */
  readonly maxLineBytes?: number;
  /** The rows' purpose, which selects the split of a hub source that names none. Default: `dataset`. */
  readonly of?: RowsOf;
}

/**
 * Checks a source without reading it. Makes no request.
 *
 * @param where Names the options that contain the source in errors: `SFTTrainer options`.
 * @param of The option that holds the source.
 * @throws PeriodicEvalError `config` for an invalid source, `data` for a file that is missing or cannot be read, or a malformed
 *   name of a dataset, with the path `[of]`.
 */
export function checkSource(where: string, of: RowsOf, source: unknown): void {
  if (Array.isArray(source)) return;
  if (typeof source !== "string" || source === "")
    throw configError({
      where,
      path: [of],
      got: describeValue(source),
      expected: "the path of a JSON Lines or Parquet file, hf:owner/dataset, or an array of rows",
      fix: "Pass the path of the file.",
    });
  try {
    if (isHubSource(source)) return void parseDatasetName(source, of);
    accessSync(source, constants.R_OK);
    if (statSync(source).isDirectory()) throw Object.assign(new Error("a directory"), { code: "EISDIR" });
  } catch (cause) {
    throw aboutOption(PeriodicEvalError.is(cause) ? cause : unreadable(source, cause), {
      where: of,
      path: [of],
    });
  }
}

/**
 * Reads the rows of a source in order; a row that cannot be parsed becomes a `BadRow`. Skips blank lines. Streams files: at
 * most a line or a row group is in memory, except of a JSON array, which is read as a whole.
 *
 * @throws PeriodicEvalError `data` for a file that cannot be read, or a dataset that cannot be had.
 */
export async function* readRows(
  source: RowSource<unknown>,
  { maxLineBytes = 2 ** 24, of = "dataset" }: ReadRowsOptions = {},
  marked: Marked = "chats",
): AsyncGenerator<SourceRow | BadRow, void> {
  if (typeof source !== "string") {
    for (const [i, value] of source.entries()) yield { where: `dataset[${i}]`, value };
    return;
  }
  for (const file of await filesOf(source, of)) {
    try {
      await file.check();
      yield* /\.parquet$/i.test(file.path)
        ? parquetRows(file, marked)
        : jsonRows(file.path, maxLineBytes, marked);
    } catch (cause) {
      throw PeriodicEvalError.is(cause) ? cause : unreadable(file.name, cause);
    }
  }
}

/**
 * Reads all rows of a source, to write them unchanged with `formatRow`.
 *
 * @throws PeriodicEvalError `data` for a row that cannot be parsed, or if there are no rows; the errors of `readRows`.
 */
export async function readRowsUnchanged(source: string): Promise<readonly SourceRow[]> {
  const rows: SourceRow[] = [];
  for await (const row of readRows(source, {}, "all")) {
    if (isBadRow(row)) throw badRowError(row);
    rows.push(row);
  }
  if (rows.length > 0) return rows;
  throw dataError(source, "no rows", "one or more", "Check that the file was written completely.");
}

async function* parquetRows(
  { path, name }: RowFile,
  where: Marked,
): AsyncGenerator<SourceRow | BadRow, void> {
  let number = 0;
  const marked = where === "all" ? where : chatColumns;
  for await (const { value, invalidText } of decodeParquet(path, name, { marked })) {
    number += 1;
    const where = `${name}:row ${number}`;
    yield invalidText === null ? { where, value } : { where, reason: "invalid_text", got: invalidText };
  }
}

function unreadable(path: string, cause: unknown): PeriodicEvalError {
  const { code } = cause as NodeJS.ErrnoException;
  return new PeriodicEvalError({
    code: "data",
    where: path,
    got: code === "ENOENT" ? "a path which does not exist" : (code ?? errorMessage(cause)),
    expected: "a readable JSON Lines or Parquet file",
    fix:
      code === "ENOENT"
        ? `Check the path: it is relative to ${process.cwd()}.`
        : "Check the dataset's path and permissions, and that the file is complete.",
    cause,
  });
}

interface RowFile {
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
