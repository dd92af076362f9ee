import { llamaFamily, type LlamaFamily } from "./llama-like.ts";

/** Settings of both generations. */
const glmLike: LlamaFamily = {
  modelType: "glm",
  defaults: {
    vocabSize: 151_552,
    contextLength: 131_072,
    hiddenSize: 4096,
    layers: 40,
    heads: 32,
    keyValueHeads: 2,
    headDim: 128,
    epsilon: 1.5625e-7,
    mlpSize: 13_696,
    padding: 151_329,
  },
  mlp: "gatedFused",
  rotary: { partial: { key: "partial_rotary_factor", fallback: 0.5 }, pairs: "adjacent" },

  describe(config, base) {
    const queryKeyValue = config.boolean("attention_bias", true);
    return { ...base, attention: { ...base.attention, bias: { queryKeyValue, output: false } } };
  },
};

/**
 * GLM-4-9B: Llama with biases on queries, keys and values, a fused gate, and rotation of adjacent dimensions in a part of each
 * head. Defaults from transformers 5.24 `GlmConfig`.
 */
export const glm = llamaFamily(glmLike);

/** GLM-4-0414 and GLM-Z1: GLM with further norms after attention and MLP. Defaults from transformers 5.24 `Glm4Config`. */
export const glm4 = llamaFamily({
  ...glmLike,
  modelType: "glm4",
  norms: { before: true, after: true },
  names: (at) => ({
    attentionOutputNorm: `${at}.post_self_attn_layernorm`,
    mlpOutputNorm: `${at}.post_mlp_layernorm`,
  }),
});
