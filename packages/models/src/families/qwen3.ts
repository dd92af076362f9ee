import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { qwenSizes } from "./qwen2.ts";
import { qwenWindows } from "./config/windows.ts";
import { attentionBias } from "./config/attention-bias.ts";

export const qwen3Names = (at: string) => ({
  queryNorm: `${at}.self_attn.q_norm`,
  keyNorm: `${at}.self_attn.k_norm`,
});

/** Qwen 3: Llama with norms of the queries and keys of each head. Defaults from transformers 5.23 `Qwen3Config`. */
export const qwen3 = llamaFamily({
  modelType: "qwen3",
  defaults: { ...qwenSizes, headDim: 128 },
  names: qwen3Names,

  describe(config, base, sizes) {
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    return {
      ...base,
      attention: {
        ...base.attention,
        bias: attentionBias(config),
        queryKeyNorm: "head",
      },
      layers: alike(sizes, rotation, qwenWindows(config, sizes.layers)),
    };
  },
});
