import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

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

  describe(config, base, sizes) {
    // Ignoring this key would silently change long contexts.
    config.only("rope_interleaved", false);
    return {
      ...base,
      attention: { ...base.attention, bias: attentionBias(config) },
      mlp: { ...base.mlp, bias: config.boolean("mlp_bias", false) },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
    };
  },
});
