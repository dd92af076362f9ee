import { rm } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { failure, shown } from "./failure.ts";
import { readJsonObject } from "./read-file.ts";

/** The file of a checkpoint in one piece. */
export const singleName = "model.safetensors";
export const indexName = "model.safetensors.index.json";
export const wholeCheckpoint = "Fetch the checkpoint anew: its files do not belong together.";

/** Which file holds which tensor. */
export type ShardIndex = ReadonlyMap<string, string>;

/** The index of a checkpoint in shards; null where there is none. Throws a `model` error for one that cannot be trusted. */
export async function readShardIndex(folder: string): Promise<ShardIndex | null> {
  const path = join(folder, indexName);
  const file = await readJsonObject(folder, indexName, wholeCheckpoint);
  if (file === null) return null;
  const map = file["weight_map"];
  if (typeof map !== "object" || map === null || Array.isArray(map))
    throw failure(path, "no weight_map", "an object weight_map from tensor to file", wholeCheckpoint);
  const index = new Map<string, string>();
  for (const [tensor, name] of Object.entries(map as Readonly<Record<string, unknown>>)) {
    // A path in an index could name any file of the machine.
    if (typeof name !== "string" || !/^\w[\w.-]*\.safetensors$/.test(name)) {
      const got = shown(name);
      throw failure(`${path}, ${tensor}`, got, "a plain name that ends in .safetensors", wholeCheckpoint);
    }
    index.set(tensor, name);
  }
  return index;
}

export const shardsOf = (index: ShardIndex): readonly string[] => [...new Set(index.values())].sort();

/**
 * Removes an index and the shards it lists, so that the file in one piece is what the folder holds. Of an index that
 * cannot be trusted only the index is removed: what it names may be anybody's.
 */
export async function removeShards(folder: string): Promise<void> {
  const index = await readShardIndex(folder).catch((error: unknown) => {
    if (PeriodicEvalError.is(error)) return new Map<string, string>();
    throw error;
  });
  if (index === null) return;
  // The index first: where this is cut off, no reader looks for a shard that is gone.
  await rm(join(folder, indexName), { force: true });
  for (const name of shardsOf(index)) if (name !== singleName) await rm(join(folder, name), { force: true });
}
