import type { Activation } from "../../ops/activation.ts";
import type { ConfigReader } from "./config-reader.ts";

export interface ModelSizes {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

/** The defaults of a configuration class; those of `keyValueHeads` and `headDim` may follow from the other sizes. */
export type SizeDefaults = Omit<ModelSizes, "keyValueHeads" | "headDim"> & Partial<ModelSizes>;

/** Reads the sizes from the keys that most families share. */
export function modelSizes(config: ConfigReader, defaults: SizeDefaults): ModelSizes {
  const hiddenSize = config.positiveInteger("hidden_size", defaults.hiddenSize);
  const heads = config.positiveInteger("num_attention_heads", defaults.heads);
  const keyValueHeads =
    config.positiveIntegerOrNull("num_key_value_heads", defaults.keyValueHeads ?? null) ?? heads;
  if (heads % keyValueHeads !== 0)
    throw config.valueError("num_key_value_heads", `a divisor of ${heads} heads`);
  const headDim = config.positiveIntegerOrNull("head_dim", defaults.headDim ?? null);
  if (headDim === null && hiddenSize % heads !== 0)
    throw config.valueError("num_attention_heads", `a divisor of hidden_size, ${hiddenSize}`);
  return {
    vocabSize: config.positiveInteger("vocab_size", defaults.vocabSize),
    contextLength: config.positiveInteger("max_position_embeddings", defaults.contextLength),
    hiddenSize,
    layers: config.positiveInteger("num_hidden_layers", defaults.layers),
    heads,
    keyValueHeads,
    headDim: headDim ?? hiddenSize / heads,
  };
}

/** Throws for a `head_dim` that differs from the size of a head, in families that compute heads without it. */
export function requireWholeHeads(config: ConfigReader, { hiddenSize, heads, headDim }: ModelSizes): void {
  if (headDim * heads !== hiddenSize)
    throw config.valueError("head_dim", `${hiddenSize / heads}, hidden_size / num_attention_heads`);
}

/**
 * Returns the row of the embedding that `pad_token_id` names; a negative id counts from the end. Null if the key is null or
 * the row does not exist.
 */
export function paddingRow(config: ConfigReader, vocabSize: number, fallback: number | null): number | null {
  const id = config.given("pad_token_id", fallback);
  if (id === null) return null;
  if (!Number.isSafeInteger(id)) throw config.valueError("pad_token_id", "an integer or null");
  const row = (id as number) < 0 ? vocabSize + (id as number) : (id as number);
  return row >= 0 && row < vocabSize ? row : null;
}

export type ActivationName = keyof typeof activations;

/** The supported names of `ACT2FN` in transformers 5.23 `activations.py`. */
const activations = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  gelu_python_tanh: "geluTanh",
  gelu_fast: "geluTanh",
  gelu_accurate: "geluTanh",
  quick_gelu: "quickGelu",
  relu: "relu",
  relu2: "reluSquared",
} as const satisfies Readonly<Record<string, Activation>>;

export function activation(config: ConfigReader, key: string, fallback: ActivationName): Activation {
  return activations[config.oneOf(key, Object.keys(activations) as ActivationName[], fallback)];
}

export type LayerType = "full_attention" | "sliding_attention";

/**
 * Reads `layer_types`; if it is absent, `derived` gives the type of each layer by its index from 0. "attention" is an older name
 * of "full_attention".
 */
export function layerTypes(
  config: ConfigReader,
  layers: number,
  derived: (index: number) => LayerType,
): readonly LayerType[] {
  const isLayerType = (entry: unknown): entry is LayerType | "attention" =>
    entry === "full_attention" || entry === "sliding_attention" || entry === "attention";
  const types = config.list("layer_types", layers, isLayerType, '"full_attention" or "sliding_attention"');
  return Array.from({ length: layers }, (_, index) => {
    const type = types === null ? derived(index) : types[index]!;
    return type === "attention" ? "full_attention" : type;
  });
}

/** Returns the types of layers of which every `period`-th has full attention. */
export const fullEvery =
  (period: number) =>
  (index: number): LayerType =>
    (index + 1) % period === 0 ? "full_attention" : "sliding_attention";

/** Returns the attention window of each layer, in tokens; null for layers with full attention. */
export function windows(
  config: ConfigReader,
  types: readonly LayerType[],
  window: number | null,
): readonly (number | null)[] {
  if (window === null && types.includes("sliding_attention"))
    throw config.valueError(
      "sliding_window",
      "a number of tokens, because some layers use sliding attention",
    );
  return types.map((type) => (type === "sliding_attention" ? window : null));
}
