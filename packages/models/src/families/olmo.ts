import { rotationsByType } from "./config/rope.ts";
import { fullEvery, layerTypes, windows } from "./config/model-options.ts";
import { llamaFamily, withWindows, type LlamaFamily } from "./llama-like.ts";

/** Settings of OLMo 2, most of which OLMo 3 shares. */
const olmo2Like: LlamaFamily = {
  modelType: "olmo2",
  defaults: {
    vocabSize: 50_304,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    epsilon: 1e-5,
    mlpSize: 11_008,
    padding: 1,
  },
  norms: { before: false, after: true },
  queryKeyNorm: "projection",
  biases: ["attention_bias"],
};

/**
 * OLMo 2: norms after attention and MLP instead of before them, and norms over all queries and over all keys. Defaults from
 * transformers 5.23 `Olmo2Config`.
 */
export const olmo2 = llamaFamily(olmo2Like);

/**
 * OLMo 3: OLMo 2 with windows in three of four layers, and a rotation of its own for these. Defaults from transformers 5.24
 * `Olmo3Config`.
 */
export const olmo3 = llamaFamily({
  ...olmo2Like,
  modelType: "olmo3",
  rotary: null,

  describe(config, base, sizes) {
    // In the layout of transformers 4, `rope_theta` applies to full attention only, as in transformers 5.24.
    const rotations = rotationsByType(config, sizes, {
      full_attention: { fallback: 500_000 },
      sliding_attention: { key: null, fallback: 500_000 },
    });
    const types = layerTypes(config, sizes.layers, fullEvery(4));
    const layerWindows = windows(config, types, config.positiveIntegerOrNull("sliding_window", 4096));
    const layers = withWindows(base.layers, layerWindows);
    return { ...base, layers: layers.map((layer, i) => ({ ...layer, rotary: rotations[types[i]!] })) };
  },
});
