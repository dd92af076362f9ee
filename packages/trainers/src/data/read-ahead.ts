import { stat } from "node:fs/promises";
import type { Json, Tokenizer } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";

/** By tokenizer, whose life it shares: what was read of a source and by which settings. */
const ahead = new WeakMap<Tokenizer, Map<string, unknown>>();

/** Everything that what is read depends on beside the tokenizer. */
export interface Reading {
  readonly source: unknown;
  readonly settings: Readonly<Record<string, Json>>;
}

/** Reads a source and keeps what it read for one `readKept` of the same; only of files, whose rows are dear. */
export async function readAhead<T>(tokenizer: Tokenizer, of: Reading, read: () => Promise<T>): Promise<T> {
  const key = await keyOf(of);
  const found = await read();
  if (key === null) return found;
  const kept = ahead.get(tokenizer) ?? new Map<string, unknown>();
  ahead.set(tokenizer, kept.set(key, found));
  return found;
}

/** What `readAhead` read of the same source by the same settings, which is then no longer kept; else reads it. */
export async function readKept<T>(tokenizer: Tokenizer, of: Reading, read: () => Promise<T>): Promise<T> {
  const key = await keyOf(of);
  const kept = ahead.get(tokenizer);
  if (key === null || kept?.has(key) !== true) return read();
  const found = kept.get(key) as T;
  kept.delete(key);
  return found;
}

/** Of a file as it is now: one that has changed since is another. Null for rows that are in memory, or are not there. */
async function keyOf({ source, settings }: Reading): Promise<string | null> {
  if (typeof source !== "string") return null;
  try {
    const { dev, ino, size, mtimeNs } = await stat(source, { bigint: true });
    return canonicalJson({ source, settings, file: [dev, ino, size, mtimeNs].map(String) });
  } catch {
    return null;
  }
}
