import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import {
  fingerprintWeights,
  weightName,
  type CausalLM,
  type NamedWeight,
  type TrainableLM,
} from "@periodic-eval/core/tfjs";

/** How a model is configured, in the forms of Hugging Face; where it does not tell, what is said there is taken as equal. */
export interface ModelConfigs {
  /** As `config.json`. */
  readonly config?: object;
  /** As PEFT's `adapter_config.json`. */
  readonly adapterConfig?: object;
}

/** Keys that change no number: where a model lay, and who wrote its files how. */
const harmless =
  /^(_?name_or_path|transformers_version|(torch_)?dtype|base_model_name_or_path|revision|inference_mode|task_type|peft_version|auto_mapping|init_lora_weights)$/;

/**
 * What a model computes by beside its weights, key by key: `model rope_theta`, `adapter lora_alpha`. Keys that say nothing
 * (null, false, nothing in it) are left out of an adapter's, as PEFT's versions write them or not.
 */
export function settingsOf({ config, adapterConfig }: ModelConfigs): Record<string, Json> {
  const adapter = entriesOf("adapter", adapterConfig).filter(([, value]) => !isEmpty(value));
  return Object.fromEntries([...entriesOf("model", config), ...adapter.map(inAnyOrder)]);
}

/** Every byte of a list of weights, on every engine. */
export type HashWeights = (weights: readonly NamedWeight[]) => Promise<string>;

const hashWeights: HashWeights = (weights) => fingerprintWeights(weights, { method: "exact" });

/**
 * The same, of the last list that was asked for not computed again. To be used while nothing writes to weights in place: a
 * variable that is assigned has another tensor, and is seen.
 */
export function hashingOnce(): HashWeights {
  let last: { readonly tensors: readonly (readonly [string, object])[]; readonly hash: string } | null = null;
  return async (weights) => {
    const tensors = weights.map(({ name, read }) => [name, read().dataId] as const);
    const isSame =
      last?.tensors.length === tensors.length &&
      last.tensors.every(([name, id], i) => name === tensors[i]![0] && id === tensors[i]![1]);
    if (!isSame) last = { tensors, hash: await hashWeights(weights) };
    return last!.hash;
  };
}

/**
 * What must be the same of the model that a phase begins with for its resume to be exact: the weights that it does not
 * train, every byte on every engine; dropout and the like (`modes`); and its settings. Trained weights are not looked at: a
 * resume puts them back.
 */
export async function exactOfModel(
  model: TrainableLM & ModelConfigs,
  hash: HashWeights = hashWeights,
): Promise<Record<string, Json>> {
  const trained = new Set(model.trainables().map(weightName));
  const frozen = (model.weights?.() ?? []).filter(({ name }) => !trained.has(name));
  return {
    ...settingsOf(model),
    frozenWeights: frozen.length === 0 ? null : await hash(frozen),
    modes: model.modes?.() ?? null,
  };
}

/** Facts that change when a number does that the model gives in evaluation mode. Null where its weights are not to be had. */
export async function fingerprintModel(
  model: CausalLM & ModelConfigs,
  hash: HashWeights = hashWeights,
): Promise<Readonly<Record<string, Json>> | null> {
  const weights = model.weights?.();
  if (weights === undefined) return null;
  return { ...settingsOf(model), weights: await hash(weights) };
}

function entriesOf(of: string, config: object = {}): (readonly [string, Json])[] {
  const values = JSON.parse(JSON.stringify(config)) as Readonly<Record<string, Json>>;
  const telling = Object.entries(values).filter(([key]) => !harmless.test(key));
  return telling.map(([key, value]) => [`${of} ${key}`, value]);
}

/** The lists of an adapter are sets of modules or of layers. */
const inAnyOrder = ([key, value]: readonly [string, Json]): readonly [string, Json] =>
  Array.isArray(value) ? [key, value.toSorted(byText)] : [key, value];

const byText = (one: Json, other: Json) => (canonicalJson(one) < canonicalJson(other) ? -1 : 1);

function isEmpty(value: Json): boolean {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
