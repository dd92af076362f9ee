import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

/**
 * Nemotron 4 and Minitron: LayerNorm with weights stored relative to 1, an MLP without a gate, squared ReLU, and rotation of a
 * part of each head. Defaults from transformers 5.24 `NemotronConfig`.
 */
export const nemotron = llamaFamily({
  modelType: "nemotron",
  defaults: {
    vocabSize: 256_000,
    contextLength: 4096,
    hiddenSize: 6144,
    layers: 32,
    heads: 48,
    epsilon: 1e-5,
    epsilonKey: "norm_eps",
    mlpSize: 24_576,
    activation: { key: "hidden_act", fallback: "relu2" },
  },
  names: (at) => ({ up: [`${at}.mlp.up_proj`] }),

  describe(config, base, sizes) {
    const partial = { key: "partial_rotary_factor", fallback: 0.5 };
    return {
      ...base,
      norm: { kind: "layer", epsilon: base.norm.epsilon, offset: 1, hasBias: true },
      attention: { ...base.attention, bias: attentionBias(config) },
      mlp: { ...base.mlp, kind: "plain", bias: config.boolean("mlp_bias", false) },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 }, partial })),
    };
  },
});
