import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/** StarCoder2: LayerNorm, biases and an MLP without a gate. Defaults from transformers 5.24 `Starcoder2Config`. */
export const starcoder2 = llamaFamily({
  modelType: "starcoder2",
  defaults: {
    vocabSize: 49_152,
    contextLength: 4096,
    hiddenSize: 3072,
    layers: 30,
    heads: 24,
    keyValueHeads: 2,
    epsilon: 1e-5,
    epsilonKey: "norm_epsilon",
    mlpSize: 12_288,
    tied: true,
    activation: { key: "hidden_act", fallback: "gelu_pytorch_tanh" },
    dropouts: ["attention_dropout", "residual_dropout", "embedding_dropout"],
  },
  names: (at) => ({ up: [`${at}.mlp.c_fc`], down: `${at}.mlp.c_proj` }),

  describe(config, base, sizes) {
    const bias = config.boolean("use_bias", true);
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    return {
      ...base,
      norm: { kind: "layer", epsilon: base.norm.epsilon, offset: 0, hasBias: true },
      attention: { ...base.attention, bias: { queryKeyValue: bias, output: bias } },
      mlp: { ...base.mlp, kind: "plain", bias },
      layers: alike(sizes, rotation, config.positiveIntegerOrNull("sliding_window", null)),
    };
  },
});
