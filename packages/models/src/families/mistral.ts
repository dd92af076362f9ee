import { rotary } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";
import { alike, llamaFamily } from "./llama-like.ts";

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
      const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
      const types = layerTypes(config, sizes.layers, () =>
        window === null ? "full_attention" : "sliding_attention",
      );
      config.only("attention_bias", false);
      return {
        ...base,
        layers: alike(sizes, rotation, windows(config, types, window)),
      };
    },
  });

export const mistral = mistralLike("mistral");
export const ministral = mistralLike("ministral");
