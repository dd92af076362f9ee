import { stat } from "@periodic-eval/store/browser";
import type { Json, Tokenizer } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import type { RowsOf } from "./bad-row.ts";
import { filesOf } from "./read-rows.ts";

/** Rows that were read ahead, by tokenizer, source and settings. They live as long as the tokenizer. */
const ahead = new WeakMap<Tokenizer, Map<string, unknown>>();

/** Everything besides the tokenizer that the rows depend on. */
export interface Reading {
  readonly source: unknown;
  readonly of: RowsOf;
  readonly settings: Readonly<Record<string, Json>>;
}

/** Reads a source and, for a file, keeps the result for further calls and for one call of `readKept`. */
export async function readAhead<T>(tokenizer: Tokenizer, of: Reading, read: () => Promise<T>): Promise<T> {
  const key = await keyOf(of);
  const kept = ahead.get(tokenizer) ?? new Map<string, unknown>();
  if (key !== null && kept.has(key)) return kept.get(key) as T;
  const found = await read();
  if (key === null) return found;
  ahead.set(tokenizer, kept.set(key, found));
  return found;
}

/** Takes the result that `readAhead` kept for the same source and settings; otherwise reads the source. */
export async function readKept<T>(tokenizer: Tokenizer, of: Reading, read: () => Promise<T>): Promise<T> {
  const key = await keyOf(of);
  const kept = ahead.get(tokenizer);
  if (key === null || kept?.has(key) !== true) return read();
  const found = kept.get(key) as T;
  kept.delete(key);
  return found;
}

/** Identifies the files of a source in their current state. Null for rows in memory and for a missing file. */
async function keyOf({ source, of, settings }: Reading): Promise<string | null> {
  if (typeof source !== "string") return null;
  const paths = (await filesOf(source, of)).map(({ path }) => path);
  try {
    const states = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
    const files = states.map(({ dev, ino, size, mtimeNs }) => [dev, ino, size, mtimeNs].map(String));
    return canonicalJson({ source, settings, files });
  } catch {
    return null;
  }
}
