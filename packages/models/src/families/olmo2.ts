import type { DecoderDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { alike, llamaFamily, type LlamaLike } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

export const olmo2Defaults = {
  vocabSize: 50_304,
  contextLength: 2048,
  hiddenSize: 4096,
  layers: 32,
  heads: 32,
  epsilon: 1e-5,
  mlpSize: 11_008,
  padding: 1,
};

export const olmo2Names = (at: string) => ({
  queryNorm: `${at}.self_attn.q_norm`,
  keyNorm: `${at}.self_attn.k_norm`,
  attentionOutputNorm: `${at}.post_attention_layernorm`,
  mlpOutputNorm: `${at}.post_feedforward_layernorm`,
});

/** Describes what OLMo 2 and 3 share. */
export function olmo2Like(config: ConfigReader, base: LlamaLike): Omit<DecoderDescription, "layers"> {
  return {
    ...base,
    block: { ...base.block, norms: { before: false, after: true } },
    attention: {
      ...base.attention,
      bias: attentionBias(config),
      queryKeyNorm: "projection",
    },
  };
}

/**
 * OLMo 2: norms after attention and MLP instead of before them, and norms over all queries and over all keys. Defaults from
 * transformers 5.23 `Olmo2Config`.
 */
export const olmo2 = llamaFamily({
  modelType: "olmo2",
  defaults: olmo2Defaults,
  names: olmo2Names,

  describe: (config, base, sizes) => ({
    ...olmo2Like(config, base),
    layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
  }),
});
