import type { ConfigReader } from "./config/config-reader.ts";
import { layerTypes, windows } from "./config/model-options.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/** SmolLM3: Llama with some layers without rotary positions. Defaults from transformers 5.23 `SmolLM3Config`. */
export const smollm3 = llamaFamily({
  modelType: "smollm3",
  defaults: {
    vocabSize: 128_256,
    contextLength: 32_768,
    hiddenSize: 2048,
    layers: 36,
    heads: 16,
    keyValueHeads: 4,
    epsilon: 1e-6,
    mlpSize: 11_008,
    tied: true,
    padding: 128_004,
  },

  rotary: { theta: { fallback: 2_000_000 } },
  biases: ["attention_bias", "mlp_bias"],

  describe(config, base, sizes) {
    const rotates = rotatingLayers(config, sizes.layers);
    const slides = config.boolean("use_sliding_window", false);
    const window = config.positiveIntegerOrNull("sliding_window", null);
    const types = layerTypes(config, sizes.layers, (index) =>
      slides && window !== null && !rotates[index] ? "sliding_attention" : "full_attention",
    );
    const layers = withWindows(base.layers, windows(config, types, window));
    // Published configurations have this key; the reference does not read it.
    config.get("max_window_layers");
    return {
      ...base,
      layers: layers.map((layer, index) => (rotates[index] ? layer : { ...layer, rotary: null })),
    };
  },
});

/** In `no_rope_layers`, 1 marks a layer with rotary positions. */
function rotatingLayers(config: ConfigReader, layers: number): readonly boolean[] {
  const isFlag = (entry: unknown): entry is 0 | 1 => entry === 0 || entry === 1;
  const flags = config.list("no_rope_layers", layers, isFlag, "0 or 1");
  const interval = config.positiveInteger("no_rope_layer_interval", 4);
  if (flags !== null) return flags.map((flag) => flag === 1);
  return Array.from({ length: layers }, (_, index) => (index + 1) % interval !== 0);
}
