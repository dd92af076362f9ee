import { statSync, accessSync, constants } from "node:fs";
import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/core/internal";
import type { BadRow } from "./bad-row.ts";
import { abbreviated } from "./in-words.ts";
import { readLines } from "./lines.ts";
import { readParquet } from "./parquet.ts";

/** A file of rows, Parquet where its name ends in `.parquet`, else JSON Lines (UTF-8, one row a line); or the rows. */
export type RowSource<Row> = string | readonly Row[];

/** A row as the source has it. */
export interface SourceRow {
  readonly where: string;
  readonly value: unknown;
}

export interface ReadRowsOptions {
  /** Of a file of JSON Lines; default 16 MiB. What JSON makes of a line can take forty times its bytes. */
  readonly maxLineBytes?: number;
}

/**
 * What can be said of a source without reading it.
 *
 * @throws PeriodicEvalError `config` where it is none, `data` for a file that is not there or cannot be read.
 */
export function checkSource(where: string, source: unknown): void {
  if (Array.isArray(source)) return;
  if (typeof source !== "string" || source === "") {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: quoteValue(source),
      expected: "the path of a JSON Lines or Parquet file, or a list of rows",
      fix: "Name the file of rows.",
    });
  }
  try {
    accessSync(source, constants.R_OK);
    if (statSync(source).isDirectory()) throw Object.assign(new Error("a directory"), { code: "EISDIR" });
  } catch (cause) {
    throw unreadable(source, cause);
  }
}

/**
 * The rows of a source in their order, or the reason why there is none at a place. Blank lines are no rows. A file is
 * streamed.
 *
 * @throws PeriodicEvalError `data` for a file that cannot be read.
 */
export async function* readRows(
  source: RowSource<unknown>,
  { maxLineBytes = 2 ** 24 }: ReadRowsOptions = {},
): AsyncGenerator<SourceRow | BadRow, void> {
  if (typeof source !== "string") {
    for (const [i, value] of source.entries()) yield { where: `dataset[${i}]`, value };
    return;
  }
  try {
    yield* /\.parquet$/i.test(source) ? parquetRows(source) : jsonRows(source, maxLineBytes);
  } catch (cause) {
    throw PeriodicEvalError.is(cause) ? cause : unreadable(source, cause);
  }
}

async function* parquetRows(path: string): AsyncGenerator<SourceRow, void> {
  let row = 0;
  for await (const value of readParquet(path)) {
    row += 1;
    yield { where: `${path}:row ${row}`, value };
  }
}

async function* jsonRows(path: string, maxLineBytes: number): AsyncGenerator<SourceRow | BadRow, void> {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let number = 0;
  for await (const line of readLines(path, maxLineBytes)) {
    number += 1;
    const where = `${path}:${number}`;
    if ("tooLong" in line) {
      const got = `${line.tooLong} bytes, ${maxLineBytes} are read at most`;
      yield { where, reason: "line_too_long", got };
      continue;
    }
    let text: string;
    try {
      text = utf8.decode(line.bytes);
    } catch {
      yield { where, reason: "invalid_text", got: "bytes that are no UTF-8" };
      continue;
    }
    if (number === 1) text = text.replace(/^\uFEFF/, "");
    if (text.trim() === "") continue;
    yield parseJson(text, where);
  }
}

function parseJson(text: string, where: string): SourceRow | BadRow {
  try {
    return { where, value: JSON.parse(text) as unknown };
  } catch {
    return { where, reason: "not_json", got: abbreviated(text) };
  }
}

function unreadable(path: string, cause: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where: path,
    got: (cause as NodeJS.ErrnoException).code ?? errorMessage(cause),
    expected: "a readable file of JSON Lines or Parquet",
    fix: "Check the path of the dataset, its permissions, and that the file is whole.",
    cause,
  });
}
