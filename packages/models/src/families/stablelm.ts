import { requireWholeHeads } from "./config/sizes.ts";
import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/** StableLM: Llama with LayerNorm and rotation of a part of each head. Defaults from transformers 5.24 `StableLmConfig`. */
export const stableLM = llamaFamily({
  modelType: "stablelm",
  defaults: {
    vocabSize: 50_304,
    contextLength: 4096,
    hiddenSize: 2560,
    layers: 32,
    heads: 32,
    keyValueHeads: 32,
    epsilon: 1e-5,
    epsilonKey: "layer_norm_eps",
    mlpSize: 6912,
    dropouts: ["attention_dropout", "hidden_dropout"],
  },

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    config.only("qk_layernorm", false);
    const isParallel = config.boolean("use_parallel_residual", false);
    const partial = { key: "partial_rotary_factor", fallback: 0.25 };
    return {
      ...base,
      norm: { kind: "layer", epsilon: base.norm.epsilon, offset: 0, hasBias: true },
      block: { ...base.block, residual: isParallel ? "parallelOneNorm" : "sequential" },
      attention: {
        ...base.attention,
        bias: { queryKeyValue: config.boolean("use_qkv_bias", false), output: false },
      },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 }, partial })),
    };
  },
});
