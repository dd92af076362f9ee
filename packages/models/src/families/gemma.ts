import type { DecoderDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { activation, type ModelSizes, fullEvery, layerTypes, windows } from "./config/model-options.ts";
import { rotationsByType } from "./config/rope.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/** Describes what all generations share: scaled embeddings, and norm weights stored relative to 1. */
function gemmaLike(config: ConfigReader, base: DecoderDescription): DecoderDescription {
  config.only("use_bidirectional_attention", false);
  return {
    ...base,
    embedding: { ...base.embedding, scale: Math.sqrt(base.hiddenSize) },
    norm: { ...base.norm, offset: 1 },
  };
}

/**
 * Gemma: Llama with scaled embeddings, norm weights stored relative to 1, and the tanh approximation of GELU. Defaults from
 * transformers 5.23 `GemmaConfig`.
 */
export const gemma = llamaFamily({
  modelType: "gemma",
  defaults: {
    vocabSize: 256_000,
    contextLength: 8192,
    hiddenSize: 3072,
    layers: 28,
    heads: 16,
    keyValueHeads: 16,
    headDim: 256,
    epsilon: 1e-6,
    mlpSize: 24_576,
    tied: true,
    padding: 0,
    activation: { key: "hidden_act", fallback: "gelu_pytorch_tanh" },
  },
  biases: ["attention_bias"],

  describe(config, base) {
    // The first configurations say "gelu" although the weights need its tanh approximation; a later key is explicit.
    const meant = base.mlp.activation === "gelu" ? "geluTanh" : base.mlp.activation;
    if (config.get("hidden_activation") !== null) {
      const named = activation(config, "hidden_activation", "gelu_pytorch_tanh");
      if (named !== meant) throw config.valueError("hidden_activation", "the activation of hidden_act");
    }
    return { ...gemmaLike(config, base), mlp: { ...base.mlp, activation: meant } };
  },
});

const gemma2Defaults = {
  vocabSize: 256_000,
  contextLength: 8192,
  hiddenSize: 2304,
  layers: 26,
  heads: 8,
  keyValueHeads: 4,
  headDim: 256,
  epsilon: 1e-6,
  mlpSize: 9216,
  tied: true,
  padding: 0,
  activation: { key: "hidden_activation", fallback: "gelu_pytorch_tanh" },
} as const;

const mlpNorm = (at: string) => ({ mlpNorm: `${at}.pre_feedforward_layernorm` });

/** Describes what Gemma 2 and VaultGemma share. */
function gemma2Like(config: ConfigReader, base: DecoderDescription, sizes: ModelSizes): DecoderDescription {
  const scoreScale = config.positiveNumber("query_pre_attn_scalar", 256) ** -0.5;
  const types = layerTypes(config, sizes.layers, fullEvery(2));
  const window = config.positiveIntegerOrNull("sliding_window", 4096);
  const layers = withWindows(base.layers, windows(config, types, window));
  // The first name of this option; configurations of the larger models have both names.
  config.only("sliding_window_size", window);
  // Published configurations also have this key; transformers uses hidden_activation.
  config.only("hidden_act", "gelu_pytorch_tanh", "gelu");
  const softCap = config.positiveNumberOrNull("attn_logit_softcapping", 50);
  return {
    ...gemmaLike(config, base),
    attention: { ...base.attention, softCap },
    layers: layers.map((layer) => ({ ...layer, scoreScale })),
    head: { ...base.head, softCap: config.positiveNumberOrNull("final_logit_softcapping", 30) },
  };
}

/**
 * Gemma 2: Gemma with further norms after attention and MLP, a window in every other layer, and soft caps. Defaults from
 * transformers 5.23 `Gemma2Config`.
 */
export const gemma2 = llamaFamily({
  modelType: "gemma2",
  defaults: gemma2Defaults,
  norms: { before: true, after: true },
  biases: ["attention_bias"],
  names: mlpNorm,
  describe: gemma2Like,
});

/** VaultGemma: Gemma 2 without the further norms. Defaults from transformers 5.24 `VaultGemmaConfig`. */
export const vaultGemma = llamaFamily({
  modelType: "vaultgemma",
  defaults: gemma2Defaults,
  biases: ["attention_bias"],
  names: mlpNorm,
  describe: gemma2Like,
});

/**
 * Gemma 3 (text): Gemma 2 with norms of the queries and keys of each head, and separate rotations for layers with a window.
 * Defaults from transformers 5.23 `Gemma3TextConfig`.
 */
export const gemma3Text = llamaFamily({
  modelType: "gemma3_text",
  defaults: { ...gemma2Defaults, vocabSize: 262_208, contextLength: 131_072 },
  norms: { before: true, after: true },
  queryKeyNorm: "head",
  rotary: null,
  biases: ["attention_bias"],
  names: mlpNorm,

  describe(config, base, sizes) {
    const rotations = rotationsByType(config, sizes, {
      full_attention: { fallback: 1_000_000 },
      sliding_attention: { key: "rope_local_base_freq", fallback: 10_000 },
    });
    const scoreScale = config.positiveNumber("query_pre_attn_scalar", 256) ** -0.5;
    const period = config.positiveInteger("sliding_window_pattern", 6);
    const types = layerTypes(config, sizes.layers, fullEvery(period));
    const layerWindows = windows(config, types, config.positiveIntegerOrNull("sliding_window", 4096));
    // The reference reads this key but does not cap scores.
    config.positiveNumberOrNull("attn_logit_softcapping", null);
    config.only("hidden_act", "gelu_pytorch_tanh", "gelu");
    return {
      ...gemmaLike(config, base),
      layers: types.map((type, index) => {
        return { window: layerWindows[index]!, rotary: rotations[type], scoreScale };
      }),
      head: { ...base.head, softCap: config.positiveNumberOrNull("final_logit_softcapping", null) },
    };
  },
});
