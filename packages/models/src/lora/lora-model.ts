import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { writeSafetensors, type TensorToWrite } from "@periodic-eval/safetensors";
import { storeError, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { join } from "@periodic-eval/store/platform";
import { partsOf, type CheckpointLM, type ModelParts } from "../checkpoint/model.ts";
import { savedDtype, tensorOf, type SaveOptions, saveCheckpoint } from "../checkpoint/save.ts";
import { createDecoder, type LiveWeight } from "../decoder/causal-lm.ts";
import { createWeight, checkpointValues } from "../decoder/variables.ts";
import { withAdapters, type Adapter, type Decoder, linearsOf, listWeights } from "../decoder/weights.ts";
import { namesIn } from "../families/family.ts";
import { familyOf } from "../families/registry.ts";
import { adapterNames } from "../hub/fetch-model.ts";
import type { AdapterPlan, AdapterTensor } from "./adapter-plan.ts";
import type { AdapterConfig } from "./lora-config.ts";

/** A model with a LoRA adapter (Hu et al. 2021). Training changes only the adapter; the model's variables are shared. */
export interface LoraLM extends CheckpointLM {
  /**
   * The adapter's name in snapshots: its folder or hub name with the base model that its configuration names; for an
   * adapter of `withLora`, its rank and alpha.
   */
  readonly adapter: string;
  /** The model without the adapter, usable at any time, even while the adapter is trained. */
  readonly base: CheckpointLM;
  /** The loaded or new `adapter_config.json`. */
  readonly adapterConfig: AdapterConfig;
  /** Returns the model's weights, then the adapter's. */
  weights(): readonly LiveWeight[];
  /** Writes `adapter_config.json` and `adapter_model.safetensors`, each atomically; PEFT loads the result. */
  save(folder: string, options?: SaveOptions): Promise<void>;
  /**
   * Writes a whole model with the adapter merged into its weights, W + scale·B·A. A tied head with an adapter becomes a
   * separate head.
   */
  saveMerged(folder: string, options?: SaveOptions): Promise<void>;
  /** Disposes the adapter, not the model. */
  dispose(): void;
}

/** Returns the row-major values of a planned tensor. */
export type AdapterValues = (tensor: AdapterTensor) => Float32Array;

export interface AdapterSource {
  readonly plan: AdapterPlan;
  readonly config: AdapterConfig;
  readonly name: string;
  readonly values: AdapterValues;
}

/** Returns the parts of a model. Throws a `config` error for a model that cannot have an adapter. */
export function adaptable(model: CheckpointLM, where: string): ModelParts {
  const parts = partsOf(model);
  if (parts !== undefined) return parts;
  const isAdapted = typeof model === "object" && model !== null && "saveMerged" in model;
  throw new PeriodicEvalError({
    code: "config",
    where: `${where}, model`,
    got: isAdapted ? "a model that already has an adapter" : "another object",
    expected: "a model of loadCausalLM or createCausalLM",
    fix: isAdapted ? "Pass its base, or load the output of saveMerged." : "Load the model first.",
  });
}

export function createLora(
  model: CheckpointLM,
  parts: ModelParts,
  { plan, config, name, values }: AdapterSource,
): LoraLM {
  const created: LiveWeight[] = [];
  const live = (tensor: AdapterTensor, transposed = tensor.shape.length === 2) => {
    const weight = createWeight({ ...tensor, transposed, initial: 0 }, values(tensor));
    created.push(weight);
    return weight;
  };
  try {
    const linears = new Map<string, Adapter<LiveWeight>>();
    let headAdapter: Adapter<LiveWeight> | null = null;
    for (const { module, scale, a, b } of plan.adapters) {
      const adapter = { name: module.name, a: live(a), b: live(b), scale };
      if (module.linear === null) headAdapter = adapter;
      else linears.set(module.linear, adapter);
    }
    const saved: Partial<Decoder<LiveWeight>> = {
      ...(plan.embedding && { embedding: live(plan.embedding, false) }),
      ...(plan.head && { head: { ...parts.weights.head!, weight: live(plan.head) } }),
    };
    const weights = withAdapters({ ...parts.weights, ...saved }, linears, headAdapter);
    const all = [...model.weights(), ...created];
    return {
      ...createDecoder({ ...parts, weights, adapter: { weights: created, dropout: plan.dropout } }),
      ...(model.name !== undefined && { name: model.name }),
      config: model.config,
      folder: model.folder,
      adapter: name,
      adapterConfig: config,
      base: model,
      weights: () => all,
      save: (folder, options) => saveAdapter(folder, config, created, options),
      saveMerged: (folder, options) =>
        saveMerged(folder, { ...parts, base: parts.weights, adapted: weights }, options),
    };
  } catch (error) {
    for (const { variable } of created) variable.dispose();
    throw error;
  }
}

async function saveAdapter(
  folder: string,
  config: AdapterConfig,
  weights: readonly LiveWeight[],
  options: SaveOptions = {},
): Promise<void> {
  const dtype = savedDtype("lora.save options", options);
  try {
    await nodeFiles.makeFolder(folder);
    await writeSafetensors(join(folder, adapterNames.weights), weights.map(tensorOf), { dtype });
    // The configuration comes last: a folder that has it has its weights.
    await writeFileAtomic(join(folder, adapterNames.config), `${JSON.stringify(config, null, 2)}\n`);
  } catch (error) {
    throw storeError(folder, error, "a folder to write the adapter to");
  }
}

interface Merging extends Pick<ModelParts, "config" | "folder" | "otherParts"> {
  readonly base: Decoder<LiveWeight>;
  /** The same decoder with adapters, and with the trained replacements of whole weights. */
  readonly adapted: Decoder<LiveWeight>;
}

/** Saves a model with every adapted weight as W + scale·B·A. */
async function saveMerged(
  folder: string,
  { config, folder: from, otherParts, base, adapted }: Merging,
  options?: SaveOptions,
): Promise<void> {
  const merged = new Map<LiveWeight, TensorToWrite>();
  const put = (weight: LiveWeight, values: TensorToWrite["values"]) =>
    merged.set(weight, { ...tensorOf(weight), values });
  const merge = (weight: LiveWeight, adapter: Adapter<LiveWeight>) =>
    put(weight, () => mergedValues(weight, adapter));
  for (const linear of adapted.layers.flatMap(linearsOf))
    if (linear.adapter) merge(linear.weight, linear.adapter);
  if (adapted.embedding !== base.embedding) put(base.embedding, () => checkpointValues(adapted.embedding));
  if (adapted.head !== base.head) put(base.head!.weight, () => checkpointValues(adapted.head!.weight));
  const { headAdapter } = adapted;
  if (headAdapter && base.head !== null) merge(base.head.weight, headAdapter);
  const tensors = listWeights(base).map((weight) => merged.get(weight) ?? tensorOf(weight));
  if (!headAdapter || base.head !== null)
    return saveCheckpoint(folder, { config, tensors, from, otherParts }, options);
  const names = namesIn(familyOf(config, "config"), (tensor) => tensor === base.embedding.name);
  const name = `${names.head}.weight`;
  const head = {
    ...tensorOf(base.embedding),
    name,
    values: () => mergedValues(base.embedding, headAdapter, true),
  };
  const untied = { ...config, tie_word_embeddings: false };
  return saveCheckpoint(folder, { config: untied, tensors: [...tensors, head], from, otherParts }, options);
}

/** Returns the merged weight, row-major in the checkpoint's shape. */
async function mergedValues(
  { variable, transposed: isTransposed }: LiveWeight,
  { a, b, scale }: Adapter<LiveWeight>,
  isEmbedding = false,
): Promise<Float32Array> {
  return valuesOf(
    tf.tidy(() => {
      const added = tf.mul<tf.Tensor2D>(tf.matMul(a.variable, b.variable), scale);
      // Linear maps are stored as [in, out], an embedding that is the head as [out, in].
      const merged = tf.add<tf.Tensor2D>(variable, isEmbedding ? tf.transpose(added) : added);
      return isTransposed ? tf.transpose(merged) : merged;
    }),
  );
}

async function valuesOf(tensor: tf.Tensor): Promise<Float32Array> {
  try {
    return (await tensor.data()) as Float32Array;
  } finally {
    tensor.dispose();
  }
}
