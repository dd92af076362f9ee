import { dirname, join, readdir } from "@periodic-eval/store/platform";
import { shellWord } from "@periodic-eval/contracts/options";

/** Weights that a program of training has written in the parts of its processes. */
export interface ShardedCheckpoint {
  /** Names the format and a file. */
  readonly got: string;
  /** The command that merges the parts. */
  readonly fix: string;
}

const beside = "into a folder with config.json and the tokenizer of the base model";

/** Formats by the names of their files or folders. */
const formats: readonly {
  readonly name: RegExp;
  readonly is: string;
  fix(folder: string, name: string): string;
}[] = [
  {
    name: /^pytorch_model_fsdp_\d+$/,
    is: "weights sharded by FSDP",
    fix: (folder, name) =>
      `Merge them ${beside}: accelerate merge-weights ${shellWord(join(folder, name))} OUTPUT. Later trainings write whole weights with fsdp_state_dict_type: FULL_STATE_DICT.`,
  },
  {
    name: /^pytorch_model_fsdp(_\d+)?\.bin$/,
    is: "whole weights of FSDP (FULL_STATE_DICT), pickled",
    fix: (folder, name) =>
      `If you trust the file, copy it as pytorch_model.bin ${beside}, load that folder with transformers and call save_pretrained("FOLDER"), which writes safetensors: cp ${shellWord(join(folder, name))} FOLDER/pytorch_model.bin.`,
  },
  {
    name: /\.distcp$/,
    is: "weights sharded by torch.distributed.checkpoint (FSDP)",
    fix: (folder) => `Merge them ${beside}: accelerate merge-weights ${shellWord(folder)} OUTPUT.`,
  },
  {
    name: /^pytorch_model_fsdp(_\d+)?_rank\d+\.bin$/,
    is: "weights sharded by FSDP (LOCAL_STATE_DICT)",
    fix: () =>
      "Load them with the program that trained, in as many processes, and save with fsdp_state_dict_type: FULL_STATE_DICT.",
  },
  {
    name: /^(global_step\d+|zero_to_fp32\.py|(mp_rank|zero_pp_rank|bf16_zero_pp_rank)_\d+.*\.pt)$/,
    is: "weights sharded by DeepSpeed",
    fix(folder, name) {
      const root = name.endsWith(".pt") ? dirname(folder) : folder;
      return `Merge them ${beside}: python ${shellWord(join(root, "zero_to_fp32.py"))} ${shellWord(root)} OUTPUT --safe_serialization. Later trainings write whole weights with stage3_gather_16bit_weights_on_model_save: true.`;
    },
  },
  {
    name: /^model_world_size_\d+_rank_\d+\.pt$/,
    is: "weights sharded by verl (FSDP)",
    fix: (folder) =>
      `Merge them: python -m verl.model_merger merge --backend fsdp --local_dir ${shellWord(folder)} --target_dir OUTPUT.`,
  },
];

/** Folders in which programs of training put the parts. */
const nested = /^(pytorch_model_\d+|model|distcp|dist_ckpt|actor)$/;

/**
 * Returns the format of weights that a training framework has written in parts, and the command that merges them; null for
 * another folder, and for one that holds whole weights beside the parts.
 *
 * @param names The names in the folder, which may be on the hub; folders in it are looked into if they are here.
 */
export async function shardedCheckpoint(
  folder: string,
  names: readonly string[],
): Promise<ShardedCheckpoint | null> {
  if (names.some((name) => name.endsWith(".safetensors"))) return null;
  const here = formatOf(folder, names);
  if (here !== null) return here;
  for (const name of names.filter((each) => nested.test(each))) {
    const inner = join(folder, name);
    const there = formatOf(inner, await readdir(inner).catch((): string[] => []));
    if (there !== null) return { ...there, got: `${name}/${there.got}` };
  }
  return null;
}

function formatOf(folder: string, names: readonly string[]): ShardedCheckpoint | null {
  for (const format of formats) {
    const name = names.find((each) => format.name.test(each));
    if (name !== undefined) return { got: `${name}, ${format.is}`, fix: format.fix(folder, name) };
  }
  return null;
}
