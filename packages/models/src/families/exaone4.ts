import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";

/**
 * EXAONE 4: norms after attention and MLP, norms of the queries and keys of each head, and layers with full attention that do not
 * rotate if others have a window. Defaults from transformers 5.24 `Exaone4Config`.
 */
export const exaone4 = llamaFamily({
  modelType: "exaone4",
  defaults: {
    vocabSize: 102_400,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    keyValueHeads: 32,
    epsilon: 1e-5,
    mlpSize: 16_384,
  },
  names: (at) => ({
    queryNorm: `${at}.self_attn.q_norm`,
    keyNorm: `${at}.self_attn.k_norm`,
    attentionOutputNorm: `${at}.post_attention_layernorm`,
    mlpOutputNorm: `${at}.post_feedforward_layernorm`,
  }),

  describe(config, base, sizes) {
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
    const window = config.positiveIntegerOrNull("sliding_window", 4096);
    // Published configurations write "LLLG" beside layer_types, which decide.
    const isDerived = config.get("layer_types") === null && window !== null;
    const period = isDerived ? config.positiveInteger("sliding_window_pattern", 4) : 1;
    config.get("sliding_window_pattern");
    const types = layerTypes(config, sizes.layers, (index) =>
      (index + 1) % period !== 0 ? "sliding_attention" : "full_attention",
    );
    const layerWindows = windows(config, types, window);
    return {
      ...base,
      block: { ...base.block, norms: { before: false, after: true } },
      attention: { ...base.attention, queryKeyNorm: "head" },
      layers: alike(sizes, rotation).map((layer, index) => ({
        ...layer,
        window: layerWindows[index]!,
        rotary: window === null || layerWindows[index] !== null ? rotation : null,
      })),
    };
  },
});
