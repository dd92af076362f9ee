import * as tf from "@tensorflow/tfjs-core";
import type { PeriodicEvalError } from "@periodic-eval/core";
import type { TensorToWrite } from "@periodic-eval/safetensors";
import type { ModelParts } from "../checkpoint/model.ts";
import { saveCheckpoint, tensorOf, type SaveOptions } from "../checkpoint/save.ts";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import { linearsOf, listWeights, type Adapter, type Decoder, type Linear } from "../decoder/weights.ts";
import { namesIn } from "../families/family.ts";
import { familyOf } from "../families/registry.ts";
import { modelError } from "../folder/model-error.ts";

export interface Merging extends Pick<ModelParts, "config" | "folder" | "otherParts"> {
  readonly base: Decoder<LiveWeight>;
  /** The same decoder with adapters, and with the trained replacements of whole weights. */
  readonly adapted: Decoder<LiveWeight>;
}

/** Saves a model with every adapted weight as W + scale·B·A and every adapted bias as b + scale·(B's bias). */
export async function saveMerged(
  folder: string,
  { config, folder: from, otherParts, base, adapted }: Merging,
  options?: SaveOptions,
): Promise<void> {
  const merged = new Map<LiveWeight, TensorToWrite>();
  const put = (weight: LiveWeight, values: TensorToWrite["values"]) =>
    merged.set(weight, { ...tensorOf(weight), values });
  const merge = ({ weight, bias }: Linear<LiveWeight>, adapter: Adapter<LiveWeight>) => {
    put(weight, () => mergedValues(weight, adapter));
    if (adapter.bias === null) return;
    if (bias === null) throw missingBias(adapter.name);
    const [own, added] = [bias, adapter.bias];
    put(own, () => valuesOf(tf.tidy(() => tf.add(own.variable, tf.mul(added.variable, adapter.scale)))));
  };
  for (const linear of adapted.layers.flatMap(linearsOf)) if (linear.adapter) merge(linear, linear.adapter);
  if (adapted.embedding !== base.embedding) put(base.embedding, () => checkpointValues(adapted.embedding));
  if (adapted.head !== base.head) put(base.head!.weight, () => checkpointValues(adapted.head!.weight));
  const { headAdapter } = adapted;
  if (headAdapter && base.head !== null) merge(base.head, headAdapter);
  const tensors = listWeights(base).map((weight) => merged.get(weight) ?? tensorOf(weight));
  if (!headAdapter || base.head !== null)
    return saveCheckpoint(folder, { config, tensors, from, otherParts }, options);
  if (headAdapter.bias !== null) throw missingBias(headAdapter.name);
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

function missingBias(module: string): PeriodicEvalError {
  return modelError({
    where: module,
    got: "an adapter whose B has a bias",
    expected: "a linear map with a bias to add it to",
    fix: "Save the adapter separately with save.",
  });
}
