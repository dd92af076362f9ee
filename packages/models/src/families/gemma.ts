import { activation } from "./config/activation-name.ts";
import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

/**
 * Gemma: Llama with scaled embeddings, norm weights stored relative to 1, and the tanh approximation of GELU. Defaults from
 * transformers 5.23 `GemmaConfig`.
 */
export const gemma = llamaFamily({
  modelType: "gemma",
  defaults: {
    vocabSize: 256_000,
    contextLength: 8192,
    hiddenSize: 3072,
    layers: 28,
    heads: 16,
    keyValueHeads: 16,
    headDim: 256,
    epsilon: 1e-6,
    mlpSize: 24_576,
    tied: true,
    padding: 0,
    activation: { key: "hidden_act", fallback: "gelu_pytorch_tanh" },
  },

  describe(config, base, sizes) {
    // The first configurations say "gelu" although the weights need its tanh approximation; a later key is explicit.
    const meant = base.mlp.activation === "gelu" ? "geluTanh" : base.mlp.activation;
    if (config.get("hidden_activation") !== null) {
      const named = activation(config, "hidden_activation", "gelu_pytorch_tanh");
      if (named !== meant) throw config.valueError("hidden_activation", "the activation of hidden_act");
    }
    config.only("use_bidirectional_attention", false);
    return {
      ...base,
      embedding: { ...base.embedding, scale: Math.sqrt(sizes.hiddenSize) },
      norm: { ...base.norm, offset: 1 },
      attention: { ...base.attention, bias: attentionBias(config) },
      mlp: { ...base.mlp, activation: meant },
      layers: alike(sizes, rotary(config, { ...sizes, theta: { fallback: 10_000 } })),
    };
  },
});
