import { shardedCheckpoint } from "@periodic-eval/data";
import { modelError, quoteShort } from "./model-error.ts";
import { join } from "@periodic-eval/store/platform";
import { rm } from "@periodic-eval/store/browser";
import { PeriodicEvalError } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import { readJsonObject } from "./read-file.ts";

/** The folder of named chat templates: `tool_use.jinja` and others. */
export const additionalTemplates = "additional_chat_templates";

/** Matches the files that describe how to use a model: tokenizer, chat template, generation settings, preparation of images. */
export const companions =
  /^(tokenizer[\w-]*\.(json|model)|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt|chat_template\.(jinja|json)|additional_chat_templates\/[^/]+\.jinja|generation_config\.json|((video_)?pre)?processor_config\.json)$/;

/** Matches weights that Python's pickle wrote. */
const pickles =
  /^(pytorch_model|adapter_model|consolidated|model|checkpoint)[\w.-]*\.(bin|bin\.index\.json|pth|pt|ckpt|pkl)$/;

/** Throws a `model` error for weights that a training framework has written in parts, with the command that merges them. */
export async function rejectSharded(folder: string, names: readonly string[]): Promise<void> {
  const sharded = await shardedCheckpoint(folder, names);
  if (sharded === null) return;
  throw modelError({ where: folder, ...sharded, expected: "whole weights in safetensors" });
}

/** Throws a `model` error for weights that are sharded or only pickled: `names` has such a file, but not `wanted`. */
export async function rejectPickled(where: string, names: readonly string[], wanted: string): Promise<void> {
  await rejectSharded(where, names);
  const pickle = names.includes(wanted) ? undefined : names.find((name) => pickles.test(name));
  if (pickle === undefined) return;
  throw modelError({
    where,
    got: `only ${pickle}, a pickled checkpoint`,
    expected: "weights in safetensors, because unpickling a file runs the code in it",
    fix: 'If you trust the file, convert it: load it with transformers, or an adapter with PEFT, and call save_pretrained("FOLDER"), which writes safetensors.',
  });
}

/** The weights of a checkpoint in a single file. */
export const singleName = "model.safetensors";
export const indexName = "model.safetensors.index.json";
export const refetchFix = "Download the checkpoint again: its files do not belong together.";

/** Maps each tensor to the file that holds it. */
export type ShardIndex = ReadonlyMap<string, string>;

/**
 * Reads the index of a sharded checkpoint; null if the folder has none.
 *
 * @throws PeriodicEvalError `model` for an index that cannot be trusted.
 */
export async function readShardIndex(folder: string): Promise<ShardIndex | null> {
  const path = join(folder, indexName);
  const file = await readJsonObject(folder, indexName, refetchFix);
  if (file === null) return null;
  const map = file["weight_map"];
  if (!isRecord(map))
    throw modelError({
      where: path,
      path: ["weight_map"],
      got: "no weight_map",
      expected: "an object weight_map from tensor to file",
      fix: refetchFix,
    });
  const index = new Map<string, string>();
  for (const [tensor, name] of Object.entries(map)) {
    // A path with folders could name any file of the machine.
    if (typeof name !== "string" || !/^\w[\w.-]*\.safetensors$/.test(name)) {
      throw modelError({
        where: `${path}, ${tensor}`,
        path: ["weight_map", tensor],
        got: quoteShort(name),
        expected: "a plain file name that ends in .safetensors",
        fix: refetchFix,
      });
    }
    index.set(tensor, name);
  }
  return index;
}

export const shardsOf = (index: ShardIndex): readonly string[] => [...new Set(index.values())].sort();

/**
 * Removes the index and the shards it lists, so that only the single file remains. If the index cannot be trusted, its
 * shards stay, because they may be unrelated files.
 */
export async function removeShards(folder: string): Promise<void> {
  const index = await readShardIndex(folder).catch((error: unknown) => {
    if (PeriodicEvalError.is(error)) return new Map<string, string>();
    throw error;
  });
  if (index === null) return;
  // Without the index no reader looks for a shard, so an interruption here leaves a readable folder.
  await rm(join(folder, indexName), { force: true });
  for (const name of shardsOf(index)) if (name !== singleName) await rm(join(folder, name), { force: true });
}
