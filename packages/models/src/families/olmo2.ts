import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/**
 * OLMo 2: norms after attention and MLP instead of before them, and norms over all queries and over all keys. Defaults from
 * transformers 5.23 `Olmo2Config`.
 */
export const olmo2 = llamaFamily({
  modelType: "olmo2",
  defaults: {
    vocabSize: 50_304,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    keyValueHeads: null,
    headDim: null,
    epsilon: 1e-5,
    mlpSize: 11_008,
    padding: 1,
  },
  names: (at) => ({
    queryNorm: `${at}.self_attn.q_norm`,
    keyNorm: `${at}.self_attn.k_norm`,
    attentionOutputNorm: `${at}.post_attention_layernorm`,
    mlpOutputNorm: `${at}.post_feedforward_layernorm`,
  }),

  describe(config, base, sizes) {
    const bias = config.boolean("attention_bias", false);
    return {
      ...base,
      block: { norms: { before: false, after: true }, residual: "sequential" },
      attention: {
        ...base.attention,
        bias: { queryKeyValue: bias, output: bias },
        queryKeyNorm: "projection",
      },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
    };
  },
});
