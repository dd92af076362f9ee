import { join, resolve } from "@periodic-eval/store/platform";
import { readdir, readFile } from "@periodic-eval/store/browser";
import { parseOptions } from "@periodic-eval/contracts/options";
import { storeError, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { writeSafetensors, type TensorToWrite, type WriteOptions } from "@periodic-eval/safetensors";
import * as z from "zod";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { additionalTemplates, companions, removeShards, singleName } from "../folder/file-names.ts";
import { listNames } from "../folder/read-file.ts";
import { openTensors } from "./tensors.ts";

export interface SaveOptions {
  /** The element type of the written weights; narrowing rounds to nearest even. Default: `"F32"`, which is lossless. */
  readonly dtype?: NonNullable<WriteOptions["dtype"]>;
}

const optionsSchema = z.strictObject({
  dtype: z.enum(["F32", "F16", "BF16"]).default("F32"),
} satisfies Record<keyof SaveOptions, z.ZodType<SaveOptions["dtype"]>>);

export interface ModelFiles {
  readonly config: HuggingFaceConfig;
  readonly tensors: readonly TensorToWrite[];
  /** The folder whose tokenizer files are copied; null for none. */
  readonly from: string | null;
  /** The names of tensors in that folder that are copied. */
  readonly otherParts: readonly string[];
}

const torchNames = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;

/**
 * Writes a model in Hugging Face's format, each file atomically. Replaces a model that the folder held, shards included.
 *
 * @throws PeriodicEvalError `store` if the folder cannot be written; `config` for a wrong option, before the first write.
 */
export async function saveCheckpoint(
  folder: string,
  { config, tensors, from, otherParts }: ModelFiles,
  options: SaveOptions = {},
): Promise<void> {
  const dtype = savedDtype("model.save options", options);
  const source = from === null || otherParts.length === 0 ? null : await openTensors(from);
  const copied = otherParts.map((name) => {
    return { name, shape: source!.tensors.get(name)!.shape, values: () => source!.read(name) };
  });
  try {
    await nodeFiles.makeFolder(folder);
    if (from !== null && resolve(from) !== resolve(folder)) await copyCompanions(from, folder);
    await writeSafetensors(join(folder, singleName), [...tensors, ...copied], { dtype });
    // Readers prefer the single file to an index; any shards belong to the previous model.
    await removeShards(folder);
    // The configuration comes last: a folder that has it has its weights.
    await writeFileAtomic(join(folder, "config.json"), configText(withDtype(config, dtype)));
  } catch (error) {
    throw storeError(folder, error, "a folder to write the model to");
  } finally {
    await source?.close();
  }
}

/** Returns the requested dtype. Throws a `config` error for a wrong option. */
export const savedDtype = (where: string, options: SaveOptions): NonNullable<SaveOptions["dtype"]> =>
  parseOptions(where, optionsSchema, options).dtype;

/** Returns a weight with its name, shape and layout in the checkpoint. */
export const tensorOf = (weight: LiveWeight): TensorToWrite => ({
  name: weight.name,
  shape: weight.transposed ? [...weight.variable.shape].reverse() : weight.variable.shape,
  values: () => checkpointValues(weight),
});

/** Sets the configuration's dtype, because readers rely on it instead of the file's. */
function withDtype(config: HuggingFaceConfig, dtype: NonNullable<SaveOptions["dtype"]>): HuggingFaceConfig {
  const key = "torch_dtype" in config && !("dtype" in config) ? "torch_dtype" : "dtype";
  return { ...config, [key]: torchNames[dtype] };
}

/**
 * Keys whose values some version of transformers accepts only with a decimal point: 5.23 rejects a
 * `final_logit_softcapping` of 30 and loads 30.0; it warns about an `attention_factor` of 1, and versions 4 reject or warn
 * about the other rotary options.
 */
const floatKeys = [
  "initializer_range|init_std|(?:rms_|layer_)?norm_eps(?:ilon)?|(?:attn|final)_logit_softcapping|logit_scale",
  "rope_theta|factor|(?:low|high)_freq_factor|beta_(?:fast|slow)|attention_factor|mscale(?:_all_dim)?",
];
const integralFloats = new RegExp(`^(\\s*"(?:${floatKeys.join("|")})": \\d+)(?=,?$)`, "gm");

const configText = (config: HuggingFaceConfig): string =>
  `${JSON.stringify(config, null, 2).replace(integralFloats, "$1.0")}\n`;

async function copyCompanions(from: string, to: string): Promise<void> {
  const templates = await listNames(from, additionalTemplates);
  const all = [...(await readdir(from)), ...templates.map((name) => `${additionalTemplates}/${name}`)];
  const names = all.filter((name) => companions.test(name));
  if (names.some((name) => name.startsWith(additionalTemplates)))
    await nodeFiles.makeFolder(join(to, additionalTemplates));
  for (const name of names) {
    const bytes = await readFile(join(from, name));
    await writeFileAtomic(join(to, name), (file) => file.write(bytes));
  }
}
