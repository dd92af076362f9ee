import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { qwenWindows } from "./config/windows.ts";

/** Defaults of the sizes, which Qwen 2 and 3 share except for the heads. */
export const qwenSizes = {
  vocabSize: 151_936,
  contextLength: 32_768,
  hiddenSize: 4096,
  layers: 32,
  heads: 32,
  keyValueHeads: 32,
  epsilon: 1e-6,
  mlpSize: 22_016,
};

/** Qwen 2 and 2.5: Llama with biases on queries, keys and values. Defaults from transformers 5.23 `Qwen2Config`. */
export const qwen2 = llamaFamily({
  modelType: "qwen2",
  defaults: qwenSizes,

  describe(config, base, sizes) {
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    config.only("use_mrope", false);
    return {
      ...base,
      attention: { ...base.attention, bias: { queryKeyValue: true, output: false } },
      layers: alike(sizes, rotation, qwenWindows(config, sizes.layers)),
    };
  },
});
