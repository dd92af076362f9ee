import { join } from "node:path";
import { checkKeys } from "@periodic-eval/core/internal";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { loadWeight, sizeOf } from "../decoder/variables.ts";
import {
  listWeights,
  mapWeights,
  weightSpecs,
  type WeightNames,
  type WeightSpec,
} from "../decoder/weights.ts";
import { ConfigReader, type HuggingFaceConfig, type SizeLimits } from "../families/config/config-reader.ts";
import type { Family } from "../families/family.ts";
import { withoutPrefix } from "../families/config/weight-names.ts";
import type { DecoderDescription } from "../decoder/description.ts";
import { familyOf } from "../families/registry.ts";
import { failure } from "../folder/failure.ts";
import { readJsonObject } from "../folder/read-file.ts";
import type { DownloadProgress } from "../hub/fetch-model.ts";
import { modelFolder } from "../hub/model-folder.ts";
import { checkDropout, createModel, type CheckpointLM } from "./model.ts";
import { openTensors, type CheckpointTensors } from "./tensors.ts";

export interface LoadOptions {
  /**
   * Probability in [0, 1) of dropping what enters the residual stream, in training; 0 by default, also where a
   * configuration of GPT-2 names other rates.
   */
  readonly dropout?: number;
  /** Name of the configuration in the folder; `config.json` by default. */
  readonly configFile?: string;
  /** Told how far a file is that has to be fetched from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
  /** Told how far the weights are read: before the first, and after each. */
  readonly onLoad?: (progress: LoadProgress) => void;
}

export interface LoadProgress {
  /** As it was given to `loadCausalLM`. */
  readonly model: string;
  /** Of the tensors in the files. */
  readonly doneBytes: number;
  readonly totalBytes: number;
}

const known = { dropout: true, configFile: true, onDownload: true, onLoad: true } as const satisfies Record<
  keyof LoadOptions,
  true
>;

/**
 * A model from a Hugging Face folder, or of its hub as `owner/name` or `owner/name@revision` (a local folder of that name
 * comes first): `config.json` (of transformers 4 or 5) and safetensors, in shards or whole. What is fetched lies in the
 * cache of huggingface_hub, by HF_HOME and HF_HUB_CACHE, and is not asked for again; HF_TOKEN opens gated models. Weights
 * are held in float32, as TensorFlow.js has no shorter floats: f16 and bf16 are widened, f64 is narrowed. The backend must
 * be set (`useBackend`). The caller disposes the model.
 *
 * Throws a `model` error that names place, got, expected and fix: an option or family that is not supported; a missing,
 * unknown or wrongly shaped tensor; a damaged file; a model that cannot be fetched. A `config` error for a wrong option of the call.
 */
export async function loadCausalLM(source: string, options: LoadOptions = {}): Promise<CheckpointLM> {
  checkKeys("loadCausalLM", options, Object.keys(known));
  const { dropout = 0, configFile = "config.json", onDownload, onLoad } = options;
  checkDropout(dropout);
  const folder = await modelFolder(source, { need: "model", configFile, ...(onDownload && { onDownload }) });
  const path = join(folder, configFile);
  const config = await readConfig(folder, configFile);
  const family = familyOf(config, path);
  const tensors = await openTensors(folder);
  try {
    const described = family.describe(new ConfigReader(config, path, limitsOf(tensors)));
    const names = namesIn(tensors, family);
    const description = await withHeadOf(tensors, described, names);
    const specs = weightSpecs(description, names);
    checkTensors(folder, listWeights(specs), tensors, { names, buffers: family.buffers });
    const live = await readWeights(listWeights(specs), tensors, (doneBytes, totalBytes) =>
      onLoad?.({ model: source, doneBytes, totalBytes }),
    );
    const weights = mapWeights(specs, ({ name }) => live.get(name)!);
    return createModel({ config, folder, description, weights, dropout });
  } finally {
    await tensors.close();
  }
}

function limitsOf({ tensors }: CheckpointTensors): SizeLimits {
  // A tensor of no bytes may name any size beside its 0, and costs its file nothing.
  const filled = [...tensors.values()].filter(({ byteLength }) => byteLength > 0);
  const sizes = filled.flatMap(({ shape }) => shape);
  return { size: sizes.reduce((a, b) => Math.max(a, b), 0), layers: filled.length };
}

/**
 * A head that is said to be tied and lies in the file with values of its own is used, as in transformers 5; the same
 * values once more are the tied head.
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

/** Piece by piece: both are the largest that a model has. */
async function haveEqualValues(
  one: string,
  other: string,
  { tensors, read }: CheckpointTensors,
): Promise<boolean> {
  const [size, otherSize] = [one, other].map((name) => tensors.get(name)!.shape.reduce((a, b) => a * b, 1));
  if (size !== otherSize) return false;
  const piece = 2 ** 22;
  for (let from = 0; from < size!; from += piece) {
    const range = [from, Math.min(size!, from + piece)] as const;
    const [a, b] = [await read(one, range), await read(other, range)];
    if (!a.every((value, i) => value === b[i])) return false;
  }
  return true;
}

/** Of a whole model, or of one that was saved without its head. */
function namesIn({ tensors }: CheckpointTensors, { names, prefix, otherHead }: Family): WeightNames {
  const bare = withoutPrefix(names, prefix);
  const found = !tensors.has(names.embedding) && tensors.has(bare.embedding) ? bare : names;
  const renamed = otherHead !== undefined && tensors.has(`${otherHead}.weight`);
  return renamed ? { ...found, head: otherHead } : found;
}

/** The largest first: what is in memory for a moment beside a weight is then gone before all of them are there. */
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

function checkTensors(
  folder: string,
  specs: readonly WeightSpec[],
  { tensors }: CheckpointTensors,
  { names, buffers }: Pick<Family, "names" | "buffers">,
): void {
  const fix = "Check that config.json and the weights are of the same model.";
  const shown = (shape: readonly number[]) => `[${shape.join(", ")}]`;
  for (const { name, shape } of specs) {
    const got = tensors.get(name)?.shape;
    if (got === undefined) throw failure(`${folder}, tensor ${name}`, "none", shown(shape), fix);
    if (shown(got) !== shown(shape))
      throw failure(`${folder}, tensor ${name}`, shown(got), shown(shape), fix);
  }
  const known = new Set(specs.map(({ name }) => name));
  for (const name of tensors.keys()) {
    // Some checkpoints with tied embeddings repeat them as a head.
    if (known.has(name) || name === `${names.head}.weight` || buffers.some((pattern) => pattern.test(name)))
      continue;
    throw failure(
      `${folder}, tensor ${name}`,
      "a tensor that this model does not have",
      `${known.size} others`,
      fix,
    );
  }
}

/** @param name `config.json`, or what stands in its place */
export async function readConfig(folder: string, name: string): Promise<HuggingFaceConfig> {
  const fix = "Point to a folder with a model in Hugging Face's form.";
  const config = await readJsonObject(folder, name, fix);
  if (config === null) throw failure(join(folder, name), "no such file", "a JSON object", fix);
  return config;
}
