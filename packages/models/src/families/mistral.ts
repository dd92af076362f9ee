import { ConfigReader } from "./config/config-reader.ts";
import { rotaryOf } from "./config/rope.ts";
import { layerTypes, windows } from "./config/model-options.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/**
 * Describes Mistral, Llama with a window in every layer, and Ministral, whose `layer_types` choose the layers with a window. A
 * configuration of Mistral with `layer_types` is one of Ministral, as in transformers. Defaults from transformers 5.24
 * `MistralConfig` and `MinistralConfig`.
 */
const mistralLike = (modelType: "mistral" | "ministral") =>
  llamaFamily({
    modelType,
    defaults: {
      vocabSize: 32_000,
      contextLength: 131_072,
      hiddenSize: 4096,
      layers: 32,
      heads: 32,
      keyValueHeads: 8,
      epsilon: 1e-6,
      mlpSize: 14_336,
    },

    describe(config, base, sizes) {
      const window = config.positiveIntegerOrNull("sliding_window", 4096);
      const types = layerTypes(config, sizes.layers, () =>
        window === null ? "full_attention" : "sliding_attention",
      );
      config.only("attention_bias", false);
      return { ...base, layers: withWindows(base.layers, windows(config, types, window)) };
    },
  });

export const mistral = mistralLike("mistral");
export const ministral = mistralLike("ministral");

/**
 * The text part of Ministral 3: Mistral with YaRN. Its reference scales queries from `original_max_position_embeddings` on, which
 * limits the context here. Defaults from transformers 5.24 `Ministral3Config`.
 */
export const ministral3 = llamaFamily({
  modelType: "ministral3",
  defaults: {
    vocabSize: 131_072,
    contextLength: 262_144,
    hiddenSize: 4096,
    layers: 34,
    heads: 32,
    keyValueHeads: 8,
    headDim: 128,
    epsilon: 1e-5,
    mlpSize: 14_336,
    padding: 11,
  },
  rotary: null,

  describe(config, base, sizes) {
    const parameters =
      config.nested("rope_parameters") ??
      config.nested("rope_scaling") ??
      new ConfigReader(defaultRope, config.at("rope_parameters"));
    // The reference scales by 1 + β · ln(1 + ⌊position / original⌋), and needs β.
    const beta = parameters.nonNegativeNumber("llama_4_scaling_beta");
    const trained = parameters.positiveInteger("original_max_position_embeddings", sizes.contextLength);
    const options = { ...sizes, theta: { fallback: 10_000 }, alsoRead: ["max_position_embeddings"] };
    const turned = {
      rotary: rotaryOf(config, parameters, options),
      window: config.positiveIntegerOrNull("sliding_window", null),
    };
    return {
      ...base,
      contextLength: beta === 0 ? sizes.contextLength : Math.min(sizes.contextLength, trained),
      layers: base.layers.map((layer) => ({ ...layer, ...turned })),
    };
  },
});

const defaultRope = {
  rope_type: "yarn",
  rope_theta: 1_000_000,
  factor: 16,
  original_max_position_embeddings: 16_384,
  mscale_all_dim: 1,
  mscale: 1,
  llama_4_scaling_beta: 0.1,
};
