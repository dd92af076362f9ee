import { join, process } from "@periodic-eval/store/platform";
import { readdir } from "@periodic-eval/store/browser";
import { functionSchema, parseOptions } from "@periodic-eval/contracts/options";
import { requireBackend } from "@periodic-eval/tfjs";
import * as z from "zod";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import type { DecoderDescription } from "../decoder/description.ts";
import { loadWeight, sizeOf } from "../decoder/variables.ts";
import {
  listWeights,
  mapWeights,
  weightSpecs,
  type WeightNames,
  type WeightSpec,
} from "../decoder/weights.ts";
import { ConfigReader, type HuggingFaceConfig } from "../families/config/config-reader.ts";
import { namesIn, type Family } from "../families/family.ts";
import { familyOf } from "../families/registry.ts";
import { rejectSharded } from "../folder/file-names.ts";
import { modelError } from "../folder/model-error.ts";
import { requireJsonObject } from "../folder/read-file.ts";
import { onDownloadSchema, type DownloadProgress, modelFolder } from "../hub/fetch-model.ts";
import { createModel, dropoutRate, type CheckpointLM } from "./model.ts";
import { checkShapes, openTensors, type CheckpointTensors } from "./tensors.ts";

export interface LoadOptions {
  /**
   * Probability in [0, 1) of dropping an addition to the residual stream in training. Default: 0, even if a GPT-2
   * configuration names other rates.
   */
  readonly dropout?: number;
  /** Name of the configuration in the folder. Default: `config.json`. */
  readonly configFile?: string;
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Called before the first weight is read and after each one. */
  readonly onLoad?: (progress: LoadProgress) => void;
}

/** How many bytes of the weights have been read. */
export interface LoadProgress {
  /** The model as passed to `loadCausalLM`. */
  readonly model: string;
  /** Bytes of tensors in the files, without their headers. */
  readonly doneBytes: number;
  readonly totalBytes: number;
}

const optionsSchema = z.strictObject({
  dropout: dropoutRate.default(0),
  configFile: z.string().min(1).default("config.json"),
  onDownload: onDownloadSchema.optional(),
  onLoad: functionSchema<(progress: LoadProgress) => void>("a function that takes the progress").optional(),
} satisfies Record<keyof LoadOptions, z.ZodType>);

/**
 * Loads a model from a local Hugging Face folder, or from the hub as `owner/name` or `owner/name@revision`; a local folder
 * of that name takes precedence. Reads `config.json` (of transformers 4 or 5) and safetensors, sharded or in one file.
 *
 * Downloads go to the cache of huggingface_hub (HF_HOME, HF_HUB_CACHE) and happen once; HF_TOKEN opens gated models.
 * Weights are held in float32, the only float type of TensorFlow.js: float16 and bfloat16 are widened, float64 is narrowed.
 * The backend must be set (`useBackend`). The caller disposes the model.
 *
 * @throws PeriodicEvalError `model` for an unsupported option or family, a missing, unknown or wrongly shaped tensor, a
 *   damaged file, or a failed download; `config` for a wrong option of the call, or if TensorFlow.js has no backend.
 */
export async function loadCausalLM(source: string, options: LoadOptions = {}): Promise<CheckpointLM> {
  const parsed = parseOptions("loadCausalLM options", optionsSchema, options);
  requireBackend("loadCausalLM");
  const { dropout, configFile, onDownload, onLoad } = parsed;
  const folder = await modelFolder(source, { need: "model", configFile, ...(onDownload && { onDownload }) });
  const path = join(folder, configFile);
  await rejectSharded(folder, await readdir(folder).catch((): string[] => []));
  const config = await readConfig(folder, configFile);
  const family = familyOf(config, path);
  const tensors = await openTensors(folder);
  try {
    const notes: string[] = [];
    const described = family.describe(new ConfigReader(config, path, { notes }));
    const names = namesOf(tensors, family);
    const description = await withHeadOf(tensors, described, names);
    const specs = weightSpecs(description, names);
    checkTensors(folder, listWeights(specs), tensors, { ...family, names });
    const otherParts = otherPartsOf(tensors, family);
    if (otherParts.length > 0)
      notes.push(
        `${folder}: only the text part is loaded, without ${otherParts.length} tensors of other parts.`,
      );
    for (const note of notes) process.emitWarning(note, { code: "PERIODIC_EVAL_CONFIG" });
    const live = await readWeights(listWeights(specs), tensors, (doneBytes, totalBytes) =>
      onLoad?.({ model: source, doneBytes, totalBytes }),
    );
    const weights = mapWeights(specs, ({ name }) => live.get(name)!);
    return createModel({ config, folder, description, weights, otherParts, dropout });
  } finally {
    await tensors.close();
  }
}

/**
 * Uses a head whose values in the file differ from the embedding although the configuration ties them, as transformers 5
 * does. Equal values are the tied head.
 */
async function withHeadOf(
  tensors: CheckpointTensors,
  description: DecoderDescription,
  names: WeightNames,
): Promise<DecoderDescription> {
  const [head, embedding] = [`${names.head}.weight`, names.embedding];
  if (!description.head.tied || !tensors.tensors.has(head) || !tensors.tensors.has(embedding))
    return description;
  const equal = await haveEqualValues(head, embedding, tensors);
  return equal ? description : { ...description, head: { ...description.head, tied: false } };
}

/** Compares piece by piece, because these are the largest tensors of a model. */
async function haveEqualValues(
  first: string,
  other: string,
  { tensors, read }: CheckpointTensors,
): Promise<boolean> {
  const [size, otherSize] = [first, other].map((name) => tensors.get(name)!.shape.reduce((a, b) => a * b, 1));
  if (size !== otherSize) return false;
  const piece = 2 ** 22;
  for (let from = 0; from < size!; from += piece) {
    const range = [from, Math.min(size!, from + piece)] as const;
    const [a, b] = [await read(first, range), await read(other, range)];
    if (!a.every((value, i) => value === b[i])) return false;
  }
  return true;
}

/** Returns the names in a checkpoint of the whole model, or of the model without its head. */
function namesOf({ tensors }: CheckpointTensors, family: Family): WeightNames {
  const names = namesIn(family, (tensor) => tensors.has(tensor));
  const { otherHead } = family;
  return otherHead !== undefined && tensors.has(`${otherHead}.weight`)
    ? { ...names, head: otherHead }
    : names;
}

/** Reads the largest weights first, so that their temporary copies do not add to the peak of memory. */
async function readWeights(
  specs: readonly WeightSpec[],
  { tensors, read }: CheckpointTensors,
  onLoad: (doneBytes: number, totalBytes: number) => void,
): Promise<ReadonlyMap<string, LiveWeight>> {
  const live = new Map<string, LiveWeight>();
  const bytesOf = ({ name }: WeightSpec) => tensors.get(name)!.byteLength;
  const totalBytes = specs.reduce((sum, spec) => sum + bytesOf(spec), 0);
  let doneBytes = 0;
  try {
    onLoad(doneBytes, totalBytes);
    for (const spec of specs.toSorted((a, b) => sizeOf(b) - sizeOf(a))) {
      live.set(spec.name, await loadWeight(spec, (range) => read(spec.name, range)));
      doneBytes += bytesOf(spec);
      onLoad(doneBytes, totalBytes);
    }
    return live;
  } catch (error) {
    for (const { variable } of live.values()) variable.dispose();
    throw error;
  }
}

/** Returns the names of the float tensors of the other parts of a multimodal model. */
const otherPartsOf = ({ tensors }: CheckpointTensors, { otherParts }: Family): readonly string[] =>
  [...tensors.values()]
    .filter(({ name, dtype }) => otherParts?.test(name) && /^B?F\d+$/.test(dtype))
    .map(({ name }) => name);

function checkTensors(
  folder: string,
  specs: readonly WeightSpec[],
  { tensors }: CheckpointTensors,
  { names, buffers, otherParts }: Pick<Family, "names" | "buffers" | "otherParts">,
): void {
  const fix = "Check that config.json and the weights belong to the same model.";
  checkShapes(folder, specs, tensors, fix);
  const known = new Set(specs.map(({ name }) => name));
  for (const name of tensors.keys()) {
    // Some checkpoints with tied embeddings repeat them as a head.
    if (known.has(name) || name === `${names.head}.weight`) continue;
    if ([otherParts, buffers, /\.rotary_emb\.inv_freq$/].some((pattern) => pattern?.test(name))) continue;
    throw modelError({
      where: `${folder}, tensor ${name}`,
      got: "a tensor that this model does not have",
      expected: `only its ${known.size} tensors`,
      fix,
    });
  }
}

/**
 * Reads a model's configuration.
 *
 * @param name `config.json`, or another name in its place.
 */
export const readConfig = (folder: string, name: string): Promise<HuggingFaceConfig> =>
  requireJsonObject(folder, name, "Pass a folder with a model in Hugging Face's format.");
