import { activation } from "./config/activation-name.ts";
import { finishConfig, unusedDropout } from "./config/unused-keys.ts";
import { modelSizes } from "./config/sizes.ts";
import type { Family } from "./family.ts";
import { alike } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { attentionBias } from "./config/attention-bias.ts";

/** GPT-NeoX and Pythia. Defaults from transformers 5.23 `GPTNeoXConfig`. */
export const gptNeoX: Family = {
  modelType: "gpt_neox",

  describe(config) {
    for (const key of ["num_key_value_heads", "head_dim"]) config.only(key);
    const { layers, heads, keyValueHeads, headDim, ...sizes } = modelSizes(config, {
      vocabSize: 50_432,
      contextLength: 2048,
      hiddenSize: 6144,
      layers: 44,
      heads: 64,
    });
    const rotation = rotary(config, {
      headDim,
      contextLength: sizes.contextLength,
      theta: { key: "rotary_emb_base", fallback: 10_000 },
      partial: { key: "rotary_pct", fallback: 0.25 },
    });
    // transformers 4 saves both a second time, under the key names of other families.
    config.only("rope_theta", config.get("rotary_emb_base") ?? 10_000);
    config.only("partial_rotary_factor", config.get("rotary_pct") ?? 0.25);
    unusedDropout(config, ["attention_dropout", "hidden_dropout"]);
    unusedDropout(config, ["attention_probs_dropout_prob", "hidden_dropout_prob"]);
    const description = {
      ...sizes,
      embedding: { scale: 1, paddingRow: null, learnedPositions: null },
      norm: {
        kind: "layer",
        epsilon: config.positiveNumber("layer_norm_eps", 1e-5),
        offset: 0,
        hasBias: true,
      },
      block: {
        norms: { before: true, after: false },
        residual: config.boolean("use_parallel_residual", true) ? "parallel" : "sequential",
        residualScale: 1,
      },
      attention: {
        heads,
        keyValueHeads,
        headDim,
        projection: "fusedByHead",
        bias: attentionBias(config, true),
        queryKeyNorm: null,
        softCap: null,
      },
      mlp: {
        kind: "plain",
        activation: activation(config, "hidden_act", "gelu"),
        size: config.positiveInteger("intermediate_size", 24_576),
        bias: true,
      },
      layers: alike({ layers, headDim }, rotation),
      head: { tied: config.boolean("tie_word_embeddings", false), bias: false, scale: 1, softCap: null },
    } as const;
    finishConfig(config, layers);
    return description;
  },

  names: {
    embedding: "gpt_neox.embed_in.weight",
    finalNorm: "gpt_neox.final_layer_norm",
    head: "embed_out",
    matrices: "outIn",
    layer(index) {
      const at = `gpt_neox.layers.${index}`;
      return {
        attentionNorm: `${at}.input_layernorm`,
        queryKeyValue: [`${at}.attention.query_key_value`],
        output: `${at}.attention.dense`,
        mlpNorm: `${at}.post_attention_layernorm`,
        up: [`${at}.mlp.dense_h_to_4h`],
        down: `${at}.mlp.dense_4h_to_h`,
      };
    },
  },
  otherHead: "lm_head",
  prefix: "gpt_neox.",
  buffers: /\.attention\.(masked_)?bias$/,
};
