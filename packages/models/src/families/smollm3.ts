import { harmlessKeys, type ConfigReader } from "./config/config-reader.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { llamaLike } from "./config/llama-like.ts";
import { llamaNames } from "./config/weight-names.ts";
import { rotary } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";

/** SmolLM3: Llama with some layers without rotary positions. Defaults from transformers 5.23 `SmolLM3Config`. */
export const smollm3: Family = {
  modelType: "smollm3",

  describe(config) {
    const sizes = modelSizes(config, {
      vocabSize: 128_256,
      contextLength: 32_768,
      hiddenSize: 2048,
      layers: 36,
      heads: 16,
      keyValueHeads: 4,
      headDim: null,
    });
    const base = llamaLike(config, sizes, { epsilon: 1e-6, mlpSize: 11_008, tied: true, padding: 128_004 });
    const bias = config.boolean("attention_bias", false);
    const rotation = rotary(config, { ...sizes, theta: { fallback: 2_000_000 } });
    const rotates = rotatingLayers(config, sizes.layers);
    const slides = config.boolean("use_sliding_window", false);
    const window = config.positiveIntegerOrNull("sliding_window", null);
    const types = layerTypes(config, sizes.layers, (index) =>
      slides && window !== null && !rotates[index] ? "sliding_attention" : "full_attention",
    );
    const layerWindows = windows(config, types, window);
    const description = {
      ...base,
      attention: { ...base.attention, bias: { queryKeyValue: bias, output: bias } },
      mlp: { ...base.mlp, bias: config.boolean("mlp_bias", false) },
      layers: rotates.map((rotating, index) => ({
        window: layerWindows[index]!,
        rotary: rotating ? rotation : null,
        scoreScale: sizes.headDim ** -0.5,
      })),
    };
    // Published configurations have this key; the reference does not read it.
    config.get("max_window_layers");
    config.finish(harmlessKeys);
    return description;
  },

  names: llamaNames(),
  prefix: "model.",
  buffers: [],
};

/** In `no_rope_layers`, 1 marks a layer with rotary positions. */
function rotatingLayers(config: ConfigReader, layers: number): readonly boolean[] {
  const isFlag = (entry: unknown): entry is 0 | 1 => entry === 0 || entry === 1;
  const given = config.list("no_rope_layers", layers, isFlag, "0 or 1");
  const interval = config.positiveInteger("no_rope_layer_interval", 4);
  if (given !== null) return given.map((flag) => flag === 1);
  return Array.from({ length: layers }, (_, index) => (index + 1) % interval !== 0);
}
