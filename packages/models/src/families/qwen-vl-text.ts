import type { RotaryDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { rotary } from "./config/rope.ts";
import { requireWholeHeads, type ModelSizes } from "./config/sizes.ts";
import { qwenWindows } from "./config/windows.ts";
import { alike, llamaFamily } from "./llama-like.ts";
import { qwen3Names } from "./qwen3.ts";
import { attentionBias } from "./config/attention-bias.ts";

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

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    const layerWindows = qwenWindows(config, sizes.layers, 80);
    const rotation = multimodalRotary(config, sizes, 1_000_000);
    return {
      ...base,
      attention: { ...base.attention, bias: { queryKeyValue: true, output: false } },
      layers: alike(sizes, rotation, layerWindows),
    };
  },
});

/** The text part of Qwen3-VL: Qwen 3 without windows. Defaults from transformers 5.24 `Qwen3VLTextConfig`. */
export const qwen3VLText = llamaFamily({
  modelType: "qwen3_vl_text",
  defaults: {
    vocabSize: 151_936,
    contextLength: 128_000,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    keyValueHeads: 32,
    headDim: 128,
    epsilon: 1e-6,
    mlpSize: 22_016,
  },
  names: qwen3Names,

  describe(config, base, sizes) {
    return {
      ...base,
      attention: {
        ...base.attention,
        bias: attentionBias(config),
        queryKeyNorm: "head",
      },
      layers: alike(sizes, multimodalRotary(config, sizes, 500_000)),
    };
  },
});

/**
 * Reads multimodal rotary positions: sections of each head turn by the row, the column and the time of an image's parts. A token of
 * text has the same number for all three, so the sections have no effect on it.
 */
const multimodalRotary = (config: ConfigReader, sizes: ModelSizes, fallback: number): RotaryDescription =>
  rotary(config, {
    ...sizes,
    theta: { fallback },
    alsoRead: ["mrope_section", "mrope_interleaved"],
    aliases: { mrope: "default" },
  });
