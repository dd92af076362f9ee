import { activation } from "./config/model-options.ts";
import { finishConfig } from "./config/unused-keys.ts";
import type { Family } from "./family.ts";

/**
 * GPT-2: learned positions, LayerNorm, linear maps stored as [in, out]. Defaults from transformers 5.23 `GPT2Config`. The
 * dropout rates of the configuration (`embd_pdrop`, `resid_pdrop`, `attn_pdrop`) are ignored: the caller sets `dropout`.
 */
export const gpt2: Family = {
  modelType: "gpt2",

  describe(config) {
    const [embd, head, layer, positions] = keys.map(([key, alias]) => {
      const isThere = config.get(alias) !== null;
      config.get(key);
      return isThere ? alias : key;
    }) as [string, string, string, string];
    const hiddenSize = config.positiveInteger(embd, 768);
    const heads = config.positiveInteger(head, 12);
    const headDim = hiddenSize / heads;
    if (!Number.isInteger(headDim)) throw config.valueError(head, `a divisor of ${embd}, ${hiddenSize}`);
    const scale = config.boolean("scale_attn_weights", true) ? headDim ** -0.5 : 1;
    const byLayer = config.boolean("scale_attn_by_inverse_layer_idx", false);
    config.only("add_cross_attention", false);
    const description = {
      vocabSize: config.positiveInteger("vocab_size", 50_257),
      contextLength: config.positiveInteger(positions, 1024),
      hiddenSize,
      embedding: { scale: 1, paddingRow: null, learnedPositions: { offset: 0 } },
      norm: {
        kind: "layer",
        epsilon: config.positiveNumber("layer_norm_epsilon", 1e-5),
        offset: 0,
        hasBias: true,
      },
      block: { norms: { before: true, after: false }, residual: "sequential", residualScale: 1 },
      attention: {
        heads,
        keyValueHeads: heads,
        headDim,
        projection: "fused",
        bias: { queryKeyValue: true, output: true },
        queryKeyNorm: null,
        softCap: null,
      },
      mlp: {
        kind: "plain",
        activation: activation(config, "activation_function", "gelu_new"),
        size: config.positiveInteger("n_inner", 4 * hiddenSize),
        bias: true,
      },
      layers: Array.from({ length: config.positiveInteger(layer, 12) }, (_, index) => {
        return { window: null, rotary: null, scoreScale: byLayer ? scale / (index + 1) : scale };
      }),
      head: { tied: config.boolean("tie_word_embeddings", true), bias: false, scale: 1, softCap: null },
    } as const;
    finishConfig(config, description.layers.length, unused);
    return description;
  },

  names: {
    embedding: "transformer.wte.weight",
    positions: "transformer.wpe.weight",
    finalNorm: "transformer.ln_f",
    head: "lm_head",
    matrices: "inOut",
    layer(index) {
      const at = `transformer.h.${index}`;
      return {
        attentionNorm: `${at}.ln_1`,
        queryKeyValue: [`${at}.attn.c_attn`],
        output: `${at}.attn.c_proj`,
        mlpNorm: `${at}.ln_2`,
        up: [`${at}.mlp.c_fc`],
        down: `${at}.mlp.c_proj`,
      };
    },
  },
  prefix: "transformer.",
  buffers: /\.attn\.(masked_)?bias$/,
};

/** Keys and their aliases, the `attribute_map` of `GPT2Config`: an alias wins there. No other class of a family has one. */
const keys = [
  ["n_embd", "hidden_size"],
  ["n_head", "num_attention_heads"],
  ["n_layer", "num_hidden_layers"],
  ["n_positions", "max_position_embeddings"],
] as const;

/**
 * Keys without effect here: heads of other tasks, dropout, a second key for the context, an order of multiplication that
 * matters only below float32, and options of the first versions of transformers.
 */
const unused: readonly RegExp[] = [
  /^summary_\w+$/,
  /^(embd|resid|attn)_pdrop$/,
  /^n_ctx$/,
  /^reorder_and_upcast_attn$/,
  /^(n_special|predict_special_tokens|output_past)$/,
];
