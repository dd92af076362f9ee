import { harmlessKeys } from "./config/config-reader.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { alike, llamaLike } from "./config/llama-like.ts";
import { llamaNames } from "./config/weight-names.ts";
import { rotary } from "./config/rope.ts";

/** Mistral: Llama with a window in every layer. Defaults from transformers 5.23 `MistralConfig`. */
export const mistral: Family = {
  modelType: "mistral",

  describe(config) {
    const sizes = modelSizes(config, {
      vocabSize: 32_000,
      contextLength: 131_072,
      hiddenSize: 4096,
      layers: 32,
      heads: 32,
      keyValueHeads: 8,
      headDim: null,
    });
    const description = {
      ...llamaLike(config, sizes, { epsilon: 1e-6, mlpSize: 14_336, tied: false, padding: null }),
      layers: alike(sizes.layers, {
        window: config.positiveIntegerOrNull("sliding_window", 4096),
        rotary: rotary(config, { ...sizes, theta: { fallback: 10_000 } }),
        scoreScale: sizes.headDim ** -0.5,
      }),
    };
    config.only("attention_bias", false);
    config.finish(harmlessKeys);
    return description;
  },

  names: llamaNames(),
  prefix: "model.",
  buffers: [/\.rotary_emb\.inv_freq$/],
};
