import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/** Mistral: Llama with a window in every layer. Defaults from transformers 5.23 `MistralConfig`. */
export const mistral = llamaFamily({
  modelType: "mistral",
  defaults: {
    vocabSize: 32_000,
    contextLength: 131_072,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    keyValueHeads: 8,
    headDim: null,
    epsilon: 1e-6,
    mlpSize: 14_336,
  },
  buffers: [/\.rotary_emb\.inv_freq$/],

  describe(config, base, sizes) {
    const window = config.positiveIntegerOrNull("sliding_window", 4096);
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    config.only("attention_bias", false);
    return { ...base, layers: alike(sizes, rotation, window) };
  },
});
