import { gemma2Defaults, gemma2Norms } from "./gemma2.ts";
import { llamaFamily } from "./llama-like.ts";
import { rotationsByType } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";
import { attentionBias } from "./config/attention-bias.ts";

/**
 * Gemma 3 (text): Gemma 2 with norms of the queries and keys of each head, and separate rotations for layers with a window.
 * Defaults from transformers 5.23 `Gemma3TextConfig`.
 */
export const gemma3Text = llamaFamily({
  modelType: "gemma3_text",
  defaults: { ...gemma2Defaults, vocabSize: 262_208, contextLength: 131_072 },
  names: (at) => ({
    queryNorm: `${at}.self_attn.q_norm`,
    keyNorm: `${at}.self_attn.k_norm`,
    ...gemma2Norms(at),
  }),

  describe(config, base, sizes) {
    const rotations = rotationsByType(config, sizes, {
      full_attention: { fallback: 1_000_000 },
      sliding_attention: { key: "rope_local_base_freq", fallback: 10_000 },
    });
    const scoreScale = config.positiveNumber("query_pre_attn_scalar", 256) ** -0.5;
    const period = config.positiveInteger("sliding_window_pattern", 6);
    const types = layerTypes(config, sizes.layers, (index) =>
      (index + 1) % period !== 0 ? "sliding_attention" : "full_attention",
    );
    const layerWindows = windows(config, types, config.positiveIntegerOrNull("sliding_window", 4096));
    // The reference reads this key but does not cap scores.
    config.positiveNumberOrNull("attn_logit_softcapping", null);
    config.only("hidden_act", "gelu_pytorch_tanh", "gelu");
    config.only("use_bidirectional_attention", false);
    return {
      ...base,
      embedding: { ...base.embedding, scale: Math.sqrt(sizes.hiddenSize) },
      norm: { ...base.norm, offset: 1 },
      block: { ...base.block, norms: { before: true, after: true } },
      attention: {
        ...base.attention,
        bias: attentionBias(config),
        queryKeyNorm: "head",
      },
      layers: types.map((type, index) => {
        return { window: layerWindows[index]!, rotary: rotations[type], scoreScale };
      }),
      head: { ...base.head, softCap: config.positiveNumberOrNull("final_logit_softcapping", null) },
    };
  },
});
