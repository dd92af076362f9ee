import { mkdir, readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { checkKeys, checkWord } from "@periodic-eval/core/internal";
import { storeError, writeWhole } from "@periodic-eval/core/snapshots";
import { writeSafetensors, type TensorToWrite, type WriteOptions } from "@periodic-eval/safetensors";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { companions } from "../folder/companions.ts";
import { pathInFolder } from "../folder/read-file.ts";
import { removeShards, singleName } from "../folder/shard-index.ts";

export interface SaveOptions {
  /** How weights are written; narrowing rounds to nearest even. `"F32"` by default, which loses nothing. */
  readonly dtype?: NonNullable<WriteOptions["dtype"]>;
}

export interface ModelFiles {
  readonly config: HuggingFaceConfig;
  readonly tensors: readonly TensorToWrite[];
  /** The folder whose tokenizer goes along; null where there is none. */
  readonly from: string | null;
}

const torchNames = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;

/**
 * Writes a model in Hugging Face's form, each file whole, in place of the one that the folder held, shards included.
 *
 * @throws PeriodicEvalError `store` where it cannot; `config` for a wrong option, before anything is written.
 */
export async function saveCheckpoint(
  folder: string,
  { config, tensors, from }: ModelFiles,
  options: SaveOptions = {},
): Promise<void> {
  const dtype = checkSaveOptions("model.save", options);
  try {
    await mkdir(folder, { recursive: true });
    if (from !== null && resolve(from) !== resolve(folder)) await copyCompanions(from, folder);
    await writeSafetensors(join(folder, singleName), tensors, { dtype });
    // Readers take the one file before an index; the shards are of the model that was here before.
    await removeShards(folder);
    // Last, so that a folder with a configuration has its weights.
    await writeWhole(join(folder, "config.json"), configText(withDtype(config, dtype)));
  } catch (error) {
    throw storeError(folder, error, "a folder to write the model to");
  }
}

/** The dtype asked for. Throws a `config` error for a wrong option. */
export function checkSaveOptions(where: string, options: SaveOptions): NonNullable<SaveOptions["dtype"]> {
  checkKeys(where, options, ["dtype"]);
  const { dtype = "F32" } = options;
  checkWord(`${where} dtype`, dtype, Object.keys(torchNames));
  return dtype;
}

/** A weight as a checkpoint holds it. */
export const tensorOf = (weight: LiveWeight): TensorToWrite => ({
  name: weight.name,
  shape: weight.transposed ? [...weight.variable.shape].reverse() : weight.variable.shape,
  values: () => checkpointValues(weight),
});

/** Readers take the dtype of the configuration for that of the file. */
function withDtype(config: HuggingFaceConfig, dtype: NonNullable<SaveOptions["dtype"]>): HuggingFaceConfig {
  const key = "torch_dtype" in config && !("dtype" in config) ? "torch_dtype" : "dtype";
  return { ...config, [key]: torchNames[dtype] };
}

/**
 * Numbers that some version of transformers takes with a point alone: 5.23 refuses a `final_logit_softcapping` of 30, and
 * loads 30.0; it warns of an `attention_factor` of 1, and versions 4 refuse or warn of the other options of rotation.
 */
const floats = [
  "initializer_range|rms_norm_eps|layer_norm_eps(?:ilon)?|(?:attn|final)_logit_softcapping",
  "rope_theta|factor|(?:low|high)_freq_factor|beta_(?:fast|slow)|attention_factor|mscale(?:_all_dim)?",
];
const wholeFloats = new RegExp(`^(\\s*"(?:${floats.join("|")})": \\d+)(?=,?$)`, "gm");

const configText = (config: HuggingFaceConfig): string =>
  `${JSON.stringify(config, null, 2).replace(wholeFloats, "$1.0")}\n`;

async function copyCompanions(from: string, to: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => companions.test(name));
  for (const name of names) {
    const bytes = await readFile(await pathInFolder(from, name));
    await writeWhole(join(to, name), (file) => file.write(bytes));
  }
}
