import { llamaFamily } from "./llama-like.ts";

/**
 * Phi-1, Phi-1.5 and Phi-2: attention and MLP in parallel after one LayerNorm, biases everywhere, and rotation of a part of each
 * head. Defaults from transformers 5.24 `PhiConfig`.
 */
export const phi = llamaFamily({
  modelType: "phi",
  defaults: {
    vocabSize: 51_200,
    contextLength: 2048,
    hiddenSize: 2048,
    layers: 24,
    heads: 32,
    epsilon: 1e-5,
    epsilonKey: "layer_norm_eps",
    mlpSize: 8192,
    activation: { key: "hidden_act", fallback: "gelu_new" },
    dropouts: ["attention_dropout", "resid_pdrop", "embd_pdrop"],
  },
  layerNorm: { offset: 0, hasBias: true },
  mlp: "plain",
  rotary: { partial: { key: "partial_rotary_factor", fallback: 0.5 } },
  names: (at) => ({
    output: `${at}.self_attn.dense`,
    up: [`${at}.mlp.fc1`],
    down: `${at}.mlp.fc2`,
  }),
  finalNorm: "model.final_layernorm",

  describe(config, base) {
    // A tied head would share its weight, but not its bias.
    config.only("tie_word_embeddings", false);
    config.only("qk_layernorm", false);
    return {
      ...base,
      block: { ...base.block, residual: "parallelOneNorm" },
      attention: { ...base.attention, bias: { queryKeyValue: true, output: true } },
      mlp: { ...base.mlp, bias: true },
      head: { ...base.head, bias: true },
    };
  },
});

/** Phi-3, Phi-3.5 and Phi-4-mini: Llama with fused linear maps. Defaults from transformers 5.23 `Phi3Config`. */
export const phi3 = llamaFamily({
  modelType: "phi3",
  defaults: {
    vocabSize: 32_064,
    contextLength: 4096,
    hiddenSize: 3072,
    layers: 32,
    heads: 32,
    epsilon: 1e-5,
    mlpSize: 8192,
    padding: 32_000,
    dropouts: ["attention_dropout", "embd_pdrop", "resid_pdrop"],
  },
  mlp: "gatedFused",
  rotary: {
    partial: { key: "partial_rotary_factor", fallback: 1 },
    originalContext: 4096,
    aliases: { su: "longrope", yarn: "longrope" },
  },
  names: (at) => ({ queryKeyValue: [`${at}.self_attn.qkv_proj`] }),

  describe(config, base) {
    for (const key of ["attention_bias", "mlp_bias", "lm_head_bias"]) config.only(key, false);
    for (const key of ["full_attn_mod", "interpolate_factor"]) config.only(key, 1);
    const window = config.positiveIntegerOrNull("sliding_window", null);
    return {
      ...base,
      attention: { ...base.attention, projection: "fused" },
      layers: base.layers.map((layer) => ({ ...layer, window })),
    };
  },
});
