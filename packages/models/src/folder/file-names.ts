import { shardedCheckpoint } from "@periodic-eval/data";
import { modelError } from "./model-error.ts";

/** Matches the files that describe how to use a model: tokenizer, chat template, generation settings, preparation of images. */
export const companions =
  /^(tokenizer[\w-]*\.(json|model)|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt|chat_template\.(jinja|json)|generation_config\.json|((video_)?pre)?processor_config\.json)$/;

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
  const found = names.includes(wanted) ? undefined : names.find((name) => pickles.test(name));
  if (found === undefined) return;
  throw modelError({
    where,
    got: `only ${found}, a pickled checkpoint`,
    expected: "weights in safetensors, because unpickling a file runs the code in it",
    fix: 'If you trust the file, convert it: load it with transformers, or an adapter with PEFT, and call save_pretrained("FOLDER"), which writes safetensors.',
  });
}
