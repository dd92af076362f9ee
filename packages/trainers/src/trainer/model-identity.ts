import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import {
  fingerprintWeights,
  weightName,
  type CausalLM,
  type NamedWeight,
  type TrainableLM,
} from "@periodic-eval/tfjs";

/** A model's configuration in the formats of Hugging Face. A missing one is not compared. */
export interface ModelConfigs {
  /** The content of `config.json`. */
  readonly config?: object;
  /** The content of PEFT's `adapter_config.json`. */
  readonly adapterConfig?: object;
}

/** Keys that do not affect results: paths, and details of how the files were written. */
const harmless =
  /^(_?name_or_path|transformers_version|(torch_)?dtype|base_model_name_or_path|revision|inference_mode|task_type|peft_version|auto_mapping|init_lora_weights)$/;

/**
 * Returns the settings that a model computes with besides its weights: `model rope_theta`, `adapter lora_alpha`. Empty
 * settings of an adapter (null, false, an empty array) are left out, because only some versions of PEFT write them.
 */
export function settingsOf({ config, adapterConfig }: ModelConfigs): Record<string, Json> {
  const adapter = entriesOf("adapter", adapterConfig).filter(([, value]) => !isEmpty(value));
  return Object.fromEntries([...entriesOf("model", config), ...adapter.map(sortEntry)]);
}

/** Hashes every byte of a list of weights, on every backend. */
const hashWeights = (weights: readonly NamedWeight[]) => fingerprintWeights(weights, { method: "exact" });

/**
 * Returns the facts about a model that must be equal for an exact resume: a hash of its frozen weights, `modes` such as
 * dropout, and its settings. Trained weights are excluded, because a resume restores them.
 */
export async function exactModelFacts(model: TrainableLM & ModelConfigs): Promise<Record<string, Json>> {
  const trained = new Set(model.trainables().map(weightName));
  const frozen = (model.weights?.() ?? []).filter(({ name }) => !trained.has(name));
  return {
    ...settingsOf(model),
    frozenWeights: frozen.length === 0 ? null : await hashWeights(frozen),
    modes: model.modes?.() ?? null,
  };
}

/**
 * Returns facts that differ between models with different results in evaluation mode. Null for a model without `weights`.
 */
export async function fingerprintModel(
  model: CausalLM & ModelConfigs,
): Promise<Readonly<Record<string, Json>> | null> {
  const weights = model.weights?.();
  if (weights === undefined) return null;
  return { ...settingsOf(model), weights: await hashWeights(weights) };
}

function entriesOf(owner: string, config: object = {}): (readonly [string, Json])[] {
  const values = JSON.parse(JSON.stringify(config)) as Readonly<Record<string, Json>>;
  const relevant = Object.entries(values).filter(([key]) => !harmless.test(key));
  return relevant.map(([key, value]) => [`${owner} ${key}`, value]);
}

/** An adapter's arrays are sets of modules or layers, so their order does not matter. */
const sortEntry = ([key, value]: readonly [string, Json]): readonly [string, Json] =>
  Array.isArray(value) ? [key, value.toSorted(byText)] : [key, value];

const byText = (a: Json, b: Json) => (canonicalJson(a) < canonicalJson(b) ? -1 : 1);

function isEmpty(value: Json): boolean {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
