import { harmlessKeys } from "./config/config-reader.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { llamaLike } from "./config/llama-like.ts";
import { llamaNames } from "./config/weight-names.ts";
import { rotary } from "./config/rope.ts";
import { qwenWindows } from "./config/windows.ts";

/** Qwen 2 and 2.5: Llama with biases on queries, keys and values. Defaults from transformers 5.23 `Qwen2Config`. */
export const qwen2: Family = {
  modelType: "qwen2",

  describe(config) {
    const sizes = modelSizes(config, {
      vocabSize: 151_936,
      contextLength: 32_768,
      hiddenSize: 4096,
      layers: 32,
      heads: 32,
      keyValueHeads: 32,
      headDim: null,
    });
    const base = llamaLike(config, sizes, { epsilon: 1e-6, mlpSize: 22_016, tied: false, padding: null });
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    const description = {
      ...base,
      attention: { ...base.attention, bias: { queryKeyValue: true, output: false } },
      layers: qwenWindows(config, sizes.layers).map((window) => {
        return { window, rotary: rotation, scoreScale: sizes.headDim ** -0.5 };
      }),
    };
    config.only("use_mrope", false);
    config.finish(harmlessKeys);
    return description;
  },

  names: llamaNames(),
  prefix: "model.",
  buffers: [/\.rotary_emb\.inv_freq$/],
};
