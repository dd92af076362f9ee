import type { ConfigReader } from "./config-reader.ts";

export interface Dimensions {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

/** The defaults of a configuration class; `keyValueHeads` and `headDim` null where they follow from the others. */
export interface DimensionDefaults {
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number | null;
  readonly headDim: number | null;
}

/** The sizes under the keys that all families but GPT-2 share. */
export function dimensions(config: ConfigReader, defaults: DimensionDefaults): Dimensions {
  const hiddenSize = config.size("hidden_size", defaults.hiddenSize);
  const heads = config.size("num_attention_heads", defaults.heads);
  const keyValueHeads = config.sizeOrNull("num_key_value_heads", defaults.keyValueHeads) ?? heads;
  if (heads % keyValueHeads !== 0) throw config.wrong("num_key_value_heads", `a divisor of ${heads} heads`);
  // A size of its own is none that follows from the others.
  const ownHeadDim = config.get("head_dim") === null ? defaults.headDim : config.size("head_dim");
  if (ownHeadDim === null && hiddenSize % heads !== 0)
    throw config.wrong("num_attention_heads", `a divisor of hidden_size, ${hiddenSize}`);
  return {
    vocabSize: config.size("vocab_size", defaults.vocabSize),
    contextLength: config.positiveInteger("max_position_embeddings", defaults.contextLength),
    hiddenSize,
    layers: config.layerCount("num_hidden_layers", defaults.layers),
    heads,
    keyValueHeads,
    headDim: ownHeadDim ?? hiddenSize / heads,
  };
}

/** The row of `pad_token_id`, from the end where it is negative; null where there is no such row. */
export function paddingRow(config: ConfigReader, vocabSize: number, fallback: number | null): number | null {
  const id = config.given("pad_token_id", fallback);
  if (id === null) return null;
  if (!Number.isSafeInteger(id)) throw config.wrong("pad_token_id", "a whole number or null");
  const row = (id as number) < 0 ? vocabSize + (id as number) : (id as number);
  return row >= 0 && row < vocabSize ? row : null;
}
