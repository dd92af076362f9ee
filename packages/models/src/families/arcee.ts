import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

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
  names: (at) => ({ up: [`${at}.mlp.up_proj`] }),

  describe(config, base, sizes) {
    return {
      ...base,
      attention: { ...base.attention, bias: attentionBias(config) },
      mlp: { ...base.mlp, kind: "plain", bias: config.boolean("mlp_bias", false) },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
    };
  },
});
