import type { DecoderDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { requireWholeHeads, fullEvery, layerTypes, windows } from "./config/model-options.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/** Settings of both generations, such as LayerNorm without bias. */
const shared = {
  defaults: {
    vocabSize: 256_000,
    contextLength: 8192,
    hiddenSize: 8192,
    layers: 40,
    heads: 64,
    epsilon: 1e-5,
    epsilonKey: "layer_norm_eps",
    mlpSize: 22_528,
    tied: true,
    padding: 0,
  },
  layerNorm: { offset: 0, hasBias: false },
  biases: ["attention_bias"],
} as const;

/** Describes both generations: the norm is before attention and MLP in parallel, and the logits are scaled. */
const cohereLike = (config: ConfigReader, base: DecoderDescription): DecoderDescription => ({
  ...base,
  block: { ...base.block, residual: "parallelOneNorm" },
  head: { ...base.head, scale: config.positiveNumber("logit_scale", 0.0625) },
});

/** Command R and Aya. Defaults from transformers 5.24 `CohereConfig`. */
export const cohere = llamaFamily({
  ...shared,
  modelType: "cohere",
  rotary: { theta: { fallback: 500_000 }, pairs: "adjacent" },

  describe(config, base) {
    config.only("use_qk_norm", false);
    return cohereLike(config, base);
  },
});

/**
 * Command R7B and Command A: windows in three of four layers, and rotation only there. Defaults from transformers 5.24
 * `Cohere2Config`.
 */
export const cohere2 = llamaFamily({
  ...shared,
  modelType: "cohere2",
  rotary: { pairs: "adjacent" },

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    const period = config.positiveInteger("sliding_window_pattern", 4);
    const types = layerTypes(config, sizes.layers, fullEvery(period));
    const window = config.positiveIntegerOrNull("sliding_window", 4096);
    const layers = withWindows(base.layers, windows(config, types, window));
    return {
      ...cohereLike(config, base),
      layers: layers.map((layer) => (layer.window === null ? { ...layer, rotary: null } : layer)),
    };
  },
});
