import { dirname, join } from "#platform";
import { shellWord } from "./shell-word.ts";

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

/**
 * Returns the format of weights that a training framework has written in parts, and the command that merges them; null for
 * another folder, and for one that holds whole weights beside the parts.
 *
 * @param names The names in the folder.
 */
export function shardedCheckpoint(folder: string, names: readonly string[]): ShardedCheckpoint | null {
  if (names.some((name) => name.endsWith(".safetensors"))) return null;
  for (const format of formats) {
    const name = names.find((each) => format.name.test(each));
    if (name !== undefined) return { got: `${name}, ${format.is}`, fix: format.fix(folder, name) };
  }
  return null;
}
