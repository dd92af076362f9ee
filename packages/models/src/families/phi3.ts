import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

/** Phi-3, Phi-3.5 and Phi-4-mini: Llama with fused linear maps. Defaults from transformers 5.23 `Phi3Config`. */
export const phi3 = llamaFamily({
  modelType: "phi3",
  defaults: {
    vocabSize: 32_064,
    contextLength: 4096,
    hiddenSize: 3072,
    layers: 32,
    heads: 32,
    epsilon: 1e-5,
    mlpSize: 8192,
    padding: 32_000,
    dropouts: ["attention_dropout", "embd_pdrop", "resid_pdrop"],
  },
  names: (at) => ({
    queryKeyValue: [`${at}.self_attn.qkv_proj`],
    up: [`${at}.mlp.gate_up_proj`],
  }),

  describe(config, base, sizes) {
    const rotation = rotary(config, {
      ...sizes,
      theta: { fallback: 10_000 },
      partial: { key: "partial_rotary_factor", fallback: 1 },
      originalContext: 4096,
      aliases: { su: "longrope", yarn: "longrope" },
    });
    for (const key of ["attention_bias", "mlp_bias", "lm_head_bias"]) config.only(key, false);
    for (const key of ["full_attn_mod", "interpolate_factor"]) config.only(key, 1);
    return {
      ...base,
      attention: { ...base.attention, projection: "fused" },
      mlp: { ...base.mlp, kind: "gatedFused" },
      layers: alike(sizes, rotation, config.positiveIntegerOrNull("sliding_window", null)),
    };
  },
});
