import { harmlessKeys } from "./config/config-reader.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { alike, llamaLike } from "./config/llama-like.ts";
import { llamaNames } from "./config/weight-names.ts";
import { rotary } from "./config/rope.ts";

/** Phi-3, Phi-3.5 and Phi-4-mini: Llama with fused linear maps. Defaults from transformers 5.23 `Phi3Config`. */
export const phi3: Family = {
  modelType: "phi3",

  describe(config) {
    const sizes = modelSizes(config, {
      vocabSize: 32_064,
      contextLength: 4096,
      hiddenSize: 3072,
      layers: 32,
      heads: 32,
      keyValueHeads: null,
      headDim: null,
    });
    const base = llamaLike(config, sizes, { epsilon: 1e-5, mlpSize: 8192, tied: false, padding: 32_000 });
    const rotation = rotary(config, {
      ...sizes,
      theta: { fallback: 10_000 },
      partial: { key: "partial_rotary_factor", fallback: 1 },
      originalContext: 4096,
      aliases: { su: "longrope", yarn: "longrope" },
    });
    for (const key of ["embd_pdrop", "resid_pdrop"]) config.only(key, 0);
    for (const key of ["attention_bias", "mlp_bias", "lm_head_bias"]) config.only(key, false);
    for (const key of ["full_attn_mod", "interpolate_factor"]) config.only(key, 1);
    const description = {
      ...base,
      attention: { ...base.attention, projection: "fused" as const },
      mlp: { ...base.mlp, kind: "gatedFused" as const },
      layers: alike(sizes.layers, {
        window: config.positiveIntegerOrNull("sliding_window", null),
        rotary: rotation,
        scoreScale: sizes.headDim ** -0.5,
      }),
    };
    config.finish(harmlessKeys);
    return description;
  },

  names: llamaNames((at) => ({
    queryKeyValue: [`${at}.self_attn.qkv_proj`],
    up: [`${at}.mlp.gate_up_proj`],
  })),
  prefix: "model.",
  buffers: [/\.rotary_emb\.inv_freq$/],
};
