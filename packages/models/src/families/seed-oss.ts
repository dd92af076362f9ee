import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

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

  describe(config, base, sizes) {
    const bias = {
      queryKeyValue: config.boolean("attention_bias", true),
      output: config.boolean("attention_out_bias", false),
    };
    return {
      ...base,
      attention: { ...base.attention, bias },
      mlp: { ...base.mlp, bias: config.boolean("mlp_bias", false) },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
    };
  },
});
