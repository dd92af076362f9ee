import type { ConfigReader } from "./config/config-reader.ts";
import { requireWholeHeads, layerTypes, windows } from "./config/model-options.ts";
import type { RopeOptions } from "./config/rope.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/** Defaults of the sizes, which Qwen 2 and 3 share except for the heads. */
const qwenSizes = {
  vocabSize: 151_936,
  contextLength: 32_768,
  hiddenSize: 4096,
  layers: 32,
  heads: 32,
  keyValueHeads: 32,
  epsilon: 1e-6,
  mlpSize: 22_016,
};

/** Returns the windows of Qwen 2 and 3: with `use_sliding_window`, layers from `max_window_layers` on slide. */
function qwenWindows(config: ConfigReader, layers: number, firstByDefault = 28): readonly (number | null)[] {
  const slides = config.boolean("use_sliding_window", false);
  const size = config.positiveIntegerOrNull("sliding_window", 4096);
  const first = config.nonNegativeInteger("max_window_layers", firstByDefault);
  const window = slides ? size : null;
  const types = layerTypes(config, layers, (index) =>
    window !== null && index >= first ? "sliding_attention" : "full_attention",
  );
  return windows(config, types, window);
}

const bias = { queryKeyValue: true, output: false };

/** Qwen 2 and 2.5: Llama with biases on queries, keys and values. Defaults from transformers 5.23 `Qwen2Config`. */
export const qwen2 = llamaFamily({
  modelType: "qwen2",
  defaults: qwenSizes,

  describe(config, base, sizes) {
    config.only("use_mrope", false);
    const layers = withWindows(base.layers, qwenWindows(config, sizes.layers));
    return { ...base, attention: { ...base.attention, bias }, layers };
  },
});

/** Qwen 3: Llama with norms of the queries and keys of each head. Defaults from transformers 5.23 `Qwen3Config`. */
export const qwen3 = llamaFamily({
  modelType: "qwen3",
  defaults: { ...qwenSizes, headDim: 128 },
  queryKeyNorm: "head",
  biases: ["attention_bias"],

  describe: (config, base, sizes) => ({
    ...base,
    layers: withWindows(base.layers, qwenWindows(config, sizes.layers)),
  }),
});

/**
 * Options of multimodal rotary positions: sections of each head turn by the row, the column and the time of an image's parts. A token
 * of text has the same number for all three, so the sections have no effect on it.
 */
const multimodalRotary = (fallback: number): Partial<RopeOptions> => ({
  theta: { fallback },
  alsoRead: ["mrope_section", "mrope_interleaved"],
  aliases: { mrope: "default" },
});

/** The text part of Qwen2.5-VL: Qwen 2. Defaults from transformers 5.24 `Qwen2_5_VLTextConfig`. */
export const qwen25VLText = llamaFamily({
  modelType: "qwen2_5_vl_text",
  defaults: {
    vocabSize: 152_064,
    contextLength: 32_768,
    hiddenSize: 8192,
    layers: 80,
    heads: 64,
    keyValueHeads: 8,
    epsilon: 1e-5,
    mlpSize: 29_568,
  },
  rotary: multimodalRotary(1_000_000),

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    const layers = withWindows(base.layers, qwenWindows(config, sizes.layers, 80));
    return { ...base, attention: { ...base.attention, bias }, layers };
  },
});

/** The text part of Qwen3-VL: Qwen 3 without windows. Defaults from transformers 5.24 `Qwen3VLTextConfig`. */
export const qwen3VLText = llamaFamily({
  modelType: "qwen3_vl_text",
  defaults: { ...qwenSizes, contextLength: 128_000, headDim: 128 },
  queryKeyNorm: "head",
  rotary: multimodalRotary(500_000),
  biases: ["attention_bias"],
});
