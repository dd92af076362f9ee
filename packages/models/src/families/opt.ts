import { activation, paddingRow } from "./config/model-options.ts";
import { finishConfig } from "./config/unused-keys.ts";
import type { Family } from "./family.ts";
import { alike } from "./llama-like.ts";

/**
 * OPT: learned positions that begin at row 2 of their table, LayerNorm, biases. Defaults from transformers 5.24 `OPTConfig`. The
 * dropout rates of the configuration are ignored, as for GPT-2. OPT-350M, which differs in its norms and has projections around
 * the layers, is refused.
 */
export const opt: Family = {
  modelType: "opt",

  describe(config) {
    const hiddenSize = config.positiveInteger("hidden_size", 768);
    const heads = config.positiveInteger("num_attention_heads", 12);
    const headDim = hiddenSize / heads;
    if (!Number.isInteger(headDim))
      throw config.valueError("num_attention_heads", `a divisor of hidden_size, ${hiddenSize}`);
    config.only("word_embed_proj_dim", hiddenSize);
    for (const key of ["do_layer_norm_before", "layer_norm_elementwise_affine"]) config.only(key, true);
    config.only("_remove_final_layer_norm", false);
    const bias = config.boolean("enable_bias", true);
    const layers = config.positiveInteger("num_hidden_layers", 12);
    const vocabSize = config.positiveInteger("vocab_size", 50_272);
    const description = {
      vocabSize,
      contextLength: config.positiveInteger("max_position_embeddings", 2048),
      hiddenSize,
      embedding: {
        scale: 1,
        paddingRow: paddingRow(config, vocabSize, 1),
        learnedPositions: { offset: 2 },
      },
      norm: { kind: "layer", epsilon: 1e-5, offset: 0, hasBias: true },
      block: { norms: { before: true, after: false }, residual: "sequential", residualScale: 1 },
      attention: {
        heads,
        keyValueHeads: heads,
        headDim,
        projection: "separate",
        bias: { queryKeyValue: bias, output: bias },
        queryKeyNorm: null,
        softCap: null,
      },
      mlp: {
        kind: "plain",
        activation: activation(config, "activation_function", "relu"),
        size: config.positiveInteger("ffn_dim", 3072),
        bias,
      },
      layers: Array.from({ length: layers }, () => alike(headDim, null)),
      head: { tied: config.boolean("tie_word_embeddings", true), bias: false, scale: 1, softCap: null },
    } as const;
    finishConfig(config, layers, [/^((attention_|activation_)?dropout|layerdrop|init_std)$/]);
    return description;
  },

  names: {
    embedding: "model.decoder.embed_tokens.weight",
    positions: "model.decoder.embed_positions.weight",
    finalNorm: "model.decoder.final_layer_norm",
    head: "lm_head",
    matrices: "outIn",
    layer(index) {
      const at = `model.decoder.layers.${index}`;
      return {
        attentionNorm: `${at}.self_attn_layer_norm`,
        queryKeyValue: ["q", "k", "v"].map((part) => `${at}.self_attn.${part}_proj`),
        output: `${at}.self_attn.out_proj`,
        mlpNorm: `${at}.final_layer_norm`,
        up: [`${at}.fc1`],
        down: `${at}.fc2`,
      };
    },
  },
  prefix: "model.",
};
