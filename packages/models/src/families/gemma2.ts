import type { DecoderDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import type { ModelSizes } from "./config/sizes.ts";
import { llamaFamily, type LlamaLike } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";
import { attentionBias } from "./config/attention-bias.ts";

export const gemma2Defaults = {
  vocabSize: 256_000,
  contextLength: 8192,
  hiddenSize: 2304,
  layers: 26,
  heads: 8,
  keyValueHeads: 4,
  headDim: 256,
  epsilon: 1e-6,
  mlpSize: 9216,
  tied: true,
  padding: 0,
  activation: { key: "hidden_activation", fallback: "gelu_pytorch_tanh" },
} as const;

export const gemma2Norms = (at: string) => ({
  attentionOutputNorm: `${at}.post_attention_layernorm`,
  mlpNorm: `${at}.pre_feedforward_layernorm`,
  mlpOutputNorm: `${at}.post_feedforward_layernorm`,
});

/** Describes what Gemma 2 and VaultGemma share. */
function gemma2Like(config: ConfigReader, base: LlamaLike, sizes: ModelSizes): DecoderDescription {
  const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 } });
  const scoreScale = config.positiveNumber("query_pre_attn_scalar", 256) ** -0.5;
  const types = layerTypes(config, sizes.layers, (index) =>
    index % 2 === 0 ? "sliding_attention" : "full_attention",
  );
  const window = config.positiveIntegerOrNull("sliding_window", 4096);
  const layerWindows = windows(config, types, window);
  // The first name of this option; configurations of the larger models have both names.
  config.only("sliding_window_size", window);
  // Published configurations also have this key; transformers uses hidden_activation.
  config.only("hidden_act", "gelu_pytorch_tanh", "gelu");
  config.only("use_bidirectional_attention", false);
  return {
    ...base,
    embedding: { ...base.embedding, scale: Math.sqrt(sizes.hiddenSize) },
    norm: { ...base.norm, offset: 1 },
    attention: {
      ...base.attention,
      bias: attentionBias(config),
      softCap: config.positiveNumberOrNull("attn_logit_softcapping", 50),
    },
    layers: layerWindows.map((window) => ({ window, rotary: rotation, scoreScale })),
    head: { ...base.head, softCap: config.positiveNumberOrNull("final_logit_softcapping", 30) },
  };
}

/**
 * Gemma 2: Gemma with further norms after attention and MLP, a window in every other layer, and soft caps. Defaults from
 * transformers 5.23 `Gemma2Config`.
 */
export const gemma2 = llamaFamily({
  modelType: "gemma2",
  defaults: gemma2Defaults,
  names: gemma2Norms,

  describe(config, base, sizes) {
    const described = gemma2Like(config, base, sizes);
    return { ...described, block: { ...described.block, norms: { before: true, after: true } } };
  },
});

/** VaultGemma: Gemma 2 without the further norms. Defaults from transformers 5.24 `VaultGemmaConfig`. */
export const vaultGemma = llamaFamily({
  modelType: "vaultgemma",
  defaults: gemma2Defaults,
  names: (at) => ({ mlpNorm: gemma2Norms(at).mlpNorm }),
  describe: gemma2Like,
});
