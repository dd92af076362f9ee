import { ConfigReader, harmlessKeys } from "./config.ts";
import type { Family } from "./family.ts";
import { rotaryFrequencies } from "./rope.ts";

/** Llama 1 to 3.x, SmolLM2 and what else calls itself `llama`. Defaults are those of transformers 5.23 `LlamaConfig`. */
export const llama: Family = {
  modelType: "llama",

  describe(json, where) {
    const config = new ConfigReader(json, where);
    const hiddenSize = config.positiveInteger("hidden_size", 4096);
    const heads = config.positiveInteger("num_attention_heads", 32);
    const keyValueHeads = config.positiveInteger("num_key_value_heads", heads);
    if (heads % keyValueHeads !== 0) throw config.wrong("num_key_value_heads", `a divisor of ${heads} heads`);
    const headDim = config.positiveInteger("head_dim", hiddenSize / heads);
    if (headDim % 2 !== 0) throw config.wrong("head_dim", "an even number");
    const attentionBias = config.boolean("attention_bias", false);
    config.oneOf("hidden_act", ["silu", "swish"], "silu");
    // These two change training and long contexts, and would change them in silence.
    config.only("attention_dropout", 0);
    config.only("rope_interleaved", false);
    const description = {
      vocabSize: config.positiveInteger("vocab_size", 32_000),
      contextLength: config.positiveInteger("max_position_embeddings", 2048),
      hiddenSize,
      layers: config.positiveInteger("num_hidden_layers", 32),
      norm: { kind: "rms", epsilon: config.positiveNumber("rms_norm_eps", 1e-6) },
      attention: {
        heads,
        keyValueHeads,
        headDim,
        scale: headDim ** -0.5,
        bias: { queryKeyValue: attentionBias, output: attentionBias },
      },
      rotary: { pairing: "halves", frequencies: rotaryFrequencies(config, headDim, 10_000) },
      mlp: {
        kind: "gated",
        activation: "silu",
        size: config.positiveInteger("intermediate_size", 11_008),
        bias: config.boolean("mlp_bias", false),
      },
      head: config.boolean("tie_word_embeddings", false) ? "tied" : "own",
    } as const;
    config.finish(harmlessKeys);
    return description;
  },

  names: {
    embedding: "model.embed_tokens.weight",
    finalNorm: "model.norm.weight",
    head: "lm_head.weight",
    layer: (index) => {
      const at = `model.layers.${index}`;
      return {
        attentionNorm: `${at}.input_layernorm.weight`,
        query: `${at}.self_attn.q_proj`,
        key: `${at}.self_attn.k_proj`,
        value: `${at}.self_attn.v_proj`,
        output: `${at}.self_attn.o_proj`,
        mlpNorm: `${at}.post_attention_layernorm.weight`,
        gate: `${at}.mlp.gate_proj`,
        up: `${at}.mlp.up_proj`,
        down: `${at}.mlp.down_proj`,
      };
    },
  },

  buffers: [/\.rotary_emb\.inv_freq$/],
};
