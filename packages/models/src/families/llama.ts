import { requireWholeHeads } from "./config/model-options.ts";
import { llamaFamily } from "./llama-like.ts";

const bothBiases = ["attention_bias", "mlp_bias"] as const;

/** Llama 1 to 3.x, SmolLM2 and other models of type `llama`. Defaults from transformers 5.23 `LlamaConfig`. */
export const llama = llamaFamily({
  modelType: "llama",
  defaults: {
    vocabSize: 32_000,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    epsilon: 1e-6,
    mlpSize: 11_008,
  },
  biases: bothBiases,

  describe(config, base) {
    // Ignoring this key would silently change long contexts.
    config.only("rope_interleaved", false);
    return base;
  },
});

/** Arcee (AFM): Llama with an MLP without a gate, and squared ReLU. Defaults from transformers 5.24 `ArceeConfig`. */
export const arcee = llamaFamily({
  modelType: "arcee",
  defaults: {
    vocabSize: 32_000,
    contextLength: 4096,
    hiddenSize: 2560,
    layers: 32,
    heads: 32,
    epsilon: 1e-5,
    mlpSize: 18_432,
    activation: { key: "hidden_act", fallback: "relu2" },
  },
  mlp: "plain",
  biases: bothBiases,
});

/**
 * Granite 3 and 4 without experts and Mamba layers: Llama with four multipliers. Defaults from transformers 5.24
 * `GraniteConfig`.
 */
export const granite = llamaFamily({
  modelType: "granite",
  defaults: {
    vocabSize: 32_000,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    epsilon: 1e-6,
    mlpSize: 11_008,
  },
  biases: bothBiases,

  describe(config, base) {
    const scoreScale = config.positiveNumber("attention_multiplier", 1);
    return {
      ...base,
      embedding: { ...base.embedding, scale: config.positiveNumber("embedding_multiplier", 1) },
      block: { ...base.block, residualScale: config.positiveNumber("residual_multiplier", 1) },
      layers: base.layers.map((layer) => ({ ...layer, scoreScale })),
      head: { ...base.head, scale: 1 / config.positiveNumber("logits_scaling", 1) },
    };
  },
});

/**
 * Nemotron 4 and Minitron: LayerNorm with weights stored relative to 1, an MLP without a gate, squared ReLU, and rotation of a
 * part of each head. Defaults from transformers 5.24 `NemotronConfig`.
 */
export const nemotron = llamaFamily({
  modelType: "nemotron",
  defaults: {
    vocabSize: 256_000,
    contextLength: 4096,
    hiddenSize: 6144,
    layers: 32,
    heads: 48,
    epsilon: 1e-5,
    epsilonKey: "norm_eps",
    mlpSize: 24_576,
    activation: { key: "hidden_act", fallback: "relu2" },
  },
  layerNorm: { offset: 1, hasBias: true },
  mlp: "plain",
  rotary: { partial: { key: "partial_rotary_factor", fallback: 0.5 } },
  biases: bothBiases,
});

/** Seed-OSS: Llama with biases on queries, keys and values. Defaults from transformers 5.24 `SeedOssConfig`. */
export const seedOss = llamaFamily({
  modelType: "seed_oss",
  defaults: {
    vocabSize: 155_136,
    contextLength: 524_288,
    hiddenSize: 4096,
    layers: 64,
    heads: 80,
    keyValueHeads: 8,
    headDim: 128,
    epsilon: 1e-6,
    mlpSize: 27_648,
    padding: 1,
    dropouts: ["attention_dropout", "residual_dropout"],
  },
  biases: ["mlp_bias"],

  describe(config, base) {
    const queryKeyValue = config.boolean("attention_bias", true);
    const output = config.boolean("attention_out_bias", false);
    return { ...base, attention: { ...base.attention, bias: { queryKeyValue, output } } };
  },
});

/** StableLM: Llama with LayerNorm and rotation of a part of each head. Defaults from transformers 5.24 `StableLmConfig`. */
export const stableLM = llamaFamily({
  modelType: "stablelm",
  defaults: {
    vocabSize: 50_304,
    contextLength: 4096,
    hiddenSize: 2560,
    layers: 32,
    heads: 32,
    keyValueHeads: 32,
    epsilon: 1e-5,
    epsilonKey: "layer_norm_eps",
    mlpSize: 6912,
    dropouts: ["attention_dropout", "hidden_dropout"],
  },
  layerNorm: { offset: 0, hasBias: true },
  rotary: { partial: { key: "partial_rotary_factor", fallback: 0.25 } },

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    config.only("qk_layernorm", false);
    const queryKeyValue = config.boolean("use_qkv_bias", false);
    const isParallel = config.boolean("use_parallel_residual", false);
    return {
      ...base,
      block: { ...base.block, residual: isParallel ? "parallelOneNorm" : "sequential" },
      attention: { ...base.attention, bias: { queryKeyValue, output: false } },
    };
  },
});

/** StarCoder2: LayerNorm, biases and an MLP without a gate. Defaults from transformers 5.24 `Starcoder2Config`. */
export const starcoder2 = llamaFamily({
  modelType: "starcoder2",
  defaults: {
    vocabSize: 49_152,
    contextLength: 4096,
    hiddenSize: 3072,
    layers: 30,
    heads: 24,
    keyValueHeads: 2,
    epsilon: 1e-5,
    epsilonKey: "norm_epsilon",
    mlpSize: 12_288,
    tied: true,
    activation: { key: "hidden_act", fallback: "gelu_pytorch_tanh" },
    dropouts: ["attention_dropout", "residual_dropout", "embedding_dropout"],
  },
  layerNorm: { offset: 0, hasBias: true },
  mlp: "plain",
  names: (at) => ({ up: [`${at}.mlp.c_fc`], down: `${at}.mlp.c_proj` }),

  describe(config, base) {
    const bias = config.boolean("use_bias", true);
    const window = config.positiveIntegerOrNull("sliding_window", null);
    return {
      ...base,
      attention: { ...base.attention, bias: { queryKeyValue: bias, output: bias } },
      mlp: { ...base.mlp, bias },
      layers: base.layers.map((layer) => ({ ...layer, window })),
    };
  },
});
