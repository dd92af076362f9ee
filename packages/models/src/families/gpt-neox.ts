import { unusedDropout } from "./config/unused-keys.ts";
import type { Family } from "./family.ts";
import { llamaFamily } from "./llama-like.ts";

/** GPT-NeoX and Pythia. Defaults from transformers 5.23 `GPTNeoXConfig`. */
export const gptNeoX: Family = {
  ...llamaFamily({
    modelType: "gpt_neox",
    defaults: {
      vocabSize: 50_432,
      contextLength: 2048,
      hiddenSize: 6144,
      layers: 44,
      heads: 64,
      epsilon: 1e-5,
      epsilonKey: "layer_norm_eps",
      mlpSize: 24_576,
      activation: { key: "hidden_act", fallback: "gelu" },
      dropouts: ["attention_dropout", "hidden_dropout"],
    },
    layerNorm: { offset: 0, hasBias: true },
    mlp: "plain",
    rotary: {
      theta: { key: "rotary_emb_base", fallback: 10_000 },
      partial: { key: "rotary_pct", fallback: 0.25 },
    },

    describe(config, base) {
      for (const key of ["num_key_value_heads", "head_dim"]) config.only(key);
      // transformers 4 saves both a second time, under the key names of other families.
      config.only("rope_theta", config.get("rotary_emb_base") ?? 10_000);
      config.only("partial_rotary_factor", config.get("rotary_pct") ?? 0.25);
      unusedDropout(config, ["attention_probs_dropout_prob", "hidden_dropout_prob"]);
      const isParallel = config.boolean("use_parallel_residual", true);
      const bias = config.boolean("attention_bias", true);
      return {
        ...base,
        embedding: { ...base.embedding, paddingRow: null },
        block: { ...base.block, residual: isParallel ? "parallel" : "sequential" },
        attention: {
          ...base.attention,
          projection: "fusedByHead",
          bias: { queryKeyValue: bias, output: bias },
        },
        mlp: { ...base.mlp, bias: true },
      };
    },
  }),

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
