import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/**
 * Phi-1, Phi-1.5 and Phi-2: attention and MLP in parallel after one LayerNorm, biases everywhere, and rotation of a part of each
 * head. Defaults from transformers 5.24 `PhiConfig`.
 */
export const phi = llamaFamily({
  modelType: "phi",
  defaults: {
    vocabSize: 51_200,
    contextLength: 2048,
    hiddenSize: 2048,
    layers: 24,
    heads: 32,
    epsilon: 1e-5,
    epsilonKey: "layer_norm_eps",
    mlpSize: 8192,
    activation: { key: "hidden_act", fallback: "gelu_new" },
    dropouts: ["attention_dropout", "resid_pdrop", "embd_pdrop"],
  },
  names: (at) => ({
    output: `${at}.self_attn.dense`,
    up: [`${at}.mlp.fc1`],
    down: `${at}.mlp.fc2`,
  }),
  finalNorm: "model.final_layernorm",

  describe(config, base, sizes) {
    // A tied head would share its weight, but not its bias.
    config.only("tie_word_embeddings", false);
    config.only("qk_layernorm", false);
    const partial = { key: "partial_rotary_factor", fallback: 0.5 };
    return {
      ...base,
      norm: { kind: "layer", epsilon: base.norm.epsilon, offset: 0, hasBias: true },
      block: { ...base.block, residual: "parallelOneNorm" },
      attention: { ...base.attention, bias: { queryKeyValue: true, output: true } },
      mlp: { ...base.mlp, kind: "plain", bias: true },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 }, partial })),
      head: { ...base.head, bias: true },
    };
  },
});
