import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

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

  describe(config, base, sizes) {
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    const scoreScale = config.positiveNumber("attention_multiplier", 1);
    return {
      ...base,
      embedding: { ...base.embedding, scale: config.positiveNumber("embedding_multiplier", 1) },
      block: { ...base.block, residualScale: config.positiveNumber("residual_multiplier", 1) },
      attention: { ...base.attention, bias: attentionBias(config) },
      mlp: { ...base.mlp, bias: config.boolean("mlp_bias", false) },
      layers: alike(sizes, rotation).map((layer) => ({ ...layer, scoreScale })),
      head: { ...base.head, scale: 1 / config.positiveNumber("logits_scaling", 1) },
    };
  },
});
