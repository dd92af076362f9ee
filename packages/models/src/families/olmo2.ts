import { harmlessKeys } from "./config/config-reader.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { alike, llamaLike } from "./config/llama-like.ts";
import { llamaNames } from "./config/weight-names.ts";
import { rotary } from "./config/rope.ts";

/**
 * OLMo 2: norms after attention and MLP instead of before them, and norms over all queries and over all keys. Defaults from
 * transformers 5.23 `Olmo2Config`.
 */
export const olmo2: Family = {
  modelType: "olmo2",

  describe(config) {
    const sizes = modelSizes(config, {
      vocabSize: 50_304,
      contextLength: 2048,
      hiddenSize: 4096,
      layers: 32,
      heads: 32,
      keyValueHeads: null,
      headDim: null,
    });
    const base = llamaLike(config, sizes, { epsilon: 1e-5, mlpSize: 11_008, tied: false, padding: 1 });
    const bias = config.boolean("attention_bias", false);
    const description = {
      ...base,
      block: { norms: { before: false, after: true }, residual: "sequential" as const },
      attention: {
        ...base.attention,
        bias: { queryKeyValue: bias, output: bias },
        queryKeyNorm: "projection" as const,
      },
      layers: alike(sizes.layers, {
        window: null,
        rotary: rotary(config, { ...sizes, theta: { fallback: 10_000 } }),
        scoreScale: sizes.headDim ** -0.5,
      }),
    };
    config.finish(harmlessKeys);
    return description;
  },

  names: llamaNames((at) => ({
    queryNorm: `${at}.self_attn.q_norm`,
    keyNorm: `${at}.self_attn.k_norm`,
    attentionOutputNorm: `${at}.post_attention_layernorm`,
    mlpOutputNorm: `${at}.post_feedforward_layernorm`,
  })),
  prefix: "model.",
  buffers: [],
};
