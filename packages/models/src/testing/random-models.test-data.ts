import type { HuggingFaceConfig } from "../families/config/config-reader.ts";

/** A configuration for a model with random weights. */
interface RandomModel {
  readonly name: string;
  readonly config: HuggingFaceConfig;
  /** Prefixes of the weights that the checkpoint names in another layout. */
  readonly renamed?: Readonly<Record<string, string>>;
}

const sizes = {
  vocab_size: 64,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 64,
  torch_dtype: "float32",
  bos_token_id: 1,
  eos_token_id: 2,
  pad_token_id: null,
};
const tied = { tie_word_embeddings: true };
const untied = { tie_word_embeddings: false };
const slides = { sliding_window: 8 };
const mixed = { layer_types: ["full_attention", "sliding_attention", "sliding_attention", "full_attention"] };
const full = { layer_types: Array.from({ length: 4 }, () => "full_attention") };
const linear = { rope_scaling: { rope_type: "linear", factor: 8 } };
const llama3 = {
  rope_theta: 500_000,
  rope_scaling: {
    rope_type: "llama3",
    factor: 16,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 16,
  },
};
const yarn = {
  rope_type: "yarn",
  factor: 8,
  original_max_position_embeddings: 8,
  attention_factor: 1.2,
  beta_fast: 32,
  beta_slow: 1,
};

const { intermediate_size: _, num_key_value_heads: __, ...ofOpt } = sizes;

const text: readonly RandomModel[] = [
  ["seed_oss", { head_dim: 8, rope_theta: 1e7, attention_dropout: 0.1, residual_dropout: 0.1 }],
  [
    "seed_oss with other biases",
    { head_dim: 16, attention_bias: false, attention_out_bias: true, mlp_bias: true, ...tied },
  ],
  ["mistral of all full layers", { head_dim: 8, ...full, ...slides }],
  ["mistral of mixed layers", { head_dim: 8, ...mixed, ...slides }],
  ["ministral", { ...slides, head_dim: 16 }],
  ["ministral of mixed layers", { head_dim: 8, ...mixed, ...slides, rope_scaling: yarn }],
  [
    "ministral3",
    { head_dim: 8, rope_parameters: { ...yarn, rope_theta: 1e6, llama_4_scaling_beta: 0, type: "yarn" } },
  ],
  [
    "ministral3 within its first context",
    {
      head_dim: 16,
      max_position_embeddings: 512,
      rope_parameters: {
        type: "yarn",
        rope_theta: 1e6,
        factor: 8,
        original_max_position_embeddings: 64,
        max_position_embeddings: 512,
        beta_fast: 32,
        beta_slow: 1,
        mscale: 1,
        mscale_all_dim: 1,
        llama_4_scaling_beta: 0.1,
      },
      ...tied,
    },
  ],
  ["olmo3", { ...slides, rope_theta: 500_000, rope_scaling: yarn, attention_bias: true }],
  ["olmo3 with another base", { ...slides, rope_theta: 10_000, ...mixed, ...tied }],
  [
    "olmo3 in the layout of transformers 5",
    {
      ...slides,
      rope_parameters: {
        full_attention: { ...yarn, rope_theta: 10_000 },
        sliding_attention: { rope_type: "default", rope_theta: 500 },
      },
    },
  ],
  ["exaone4 without windows", { sliding_window: null, ...full, head_dim: 16, ...llama3, ...tied }],
  [
    "exaone4",
    { ...slides, sliding_window_pattern: "LLLG", layer_types: [...mixed.layer_types], rope_theta: 1e6 },
  ],
  ["exaone4 by its pattern", { ...slides, sliding_window_pattern: 2 }],
  [
    "vaultgemma",
    {
      ...slides,
      head_dim: 16,
      query_pre_attn_scalar: 24,
      attn_logit_softcapping: 2.5,
      final_logit_softcapping: 3.5,
    },
  ],
  [
    "vaultgemma without caps",
    { ...mixed, ...slides, head_dim: 8, attn_logit_softcapping: null, final_logit_softcapping: null },
  ],
  [
    "starcoder2",
    {
      ...slides,
      use_bias: true,
      attention_dropout: 0.1,
      residual_dropout: 0.1,
      embedding_dropout: 0.1,
      rope_theta: 1e6,
    },
  ],
  ["starcoder2 without biases", { use_bias: false, norm_epsilon: 1e-3, hidden_act: "quick_gelu", ...untied }],
  ["stablelm", { partial_rotary_factor: 0.25, use_qkv_bias: true, layer_norm_eps: 1e-3 }],
  ["stablelm in parallel", { partial_rotary_factor: 0.5, use_parallel_residual: true, ...tied }],
  [
    "granite",
    {
      embedding_multiplier: 12,
      attention_multiplier: 0.0078125,
      residual_multiplier: 0.22,
      logits_scaling: 8,
      rope_theta: 1e7,
      ...tied,
    },
  ],
  [
    "granite with biases",
    {
      attention_bias: true,
      mlp_bias: true,
      residual_multiplier: 0.5,
      logits_scaling: 0.5,
      attention_multiplier: 0.2,
    },
  ],
  ["arcee", { head_dim: 16, rope_scaling: { ...yarn, mscale: 1 } }],
  ["arcee with biases", { attention_bias: true, mlp_bias: true, ...tied }],
  ["phi", { partial_rotary_factor: 0.5, num_key_value_heads: 4, resid_pdrop: 0.1 }],
  ["phi with grouped heads", { partial_rotary_factor: 0.25, hidden_act: "gelu" }],
  ["nemotron", { head_dim: 8, norm_eps: 1e-3, partial_rotary_factor: 0.5 }],
  [
    "nemotron with biases",
    { head_dim: 16, attention_bias: true, mlp_bias: true, partial_rotary_factor: 1, ...tied },
  ],
  ["cohere", { logit_scale: 2.5, rope_theta: 8e6 }],
  ["cohere with biases", { logit_scale: 1.5, attention_bias: true, ...untied, ...linear }],
  [
    "cohere2",
    { ...slides, head_dim: 8, logit_scale: 0.25, rope_theta: 50_000, use_qk_norm: false, layer_switch: 4 },
  ],
  ["cohere2 of mixed layers", { ...mixed, ...slides, logit_scale: 1.5, attention_bias: true, ...untied }],
  ["glm", { head_dim: 8, partial_rotary_factor: 0.5, attention_bias: true, pad_token_id: 3 }],
  ["glm without biases", { head_dim: 16, partial_rotary_factor: 0.25, attention_bias: false, ...tied }],
  ["glm4", { head_dim: 8, partial_rotary_factor: 0.5, attention_bias: false }],
  ["glm4 with biases", { head_dim: 16, partial_rotary_factor: 1, attention_bias: true, rms_norm_eps: 1e-3 }],
].map(([name, options]) => {
  const [model_type] = (name as string).split(" ");
  return { name: name as string, config: { ...sizes, model_type, ...(options as object) } };
});

const opt: readonly RandomModel[] = [
  {
    name: "opt",
    config: { ...ofOpt, model_type: "opt", ffn_dim: 48, word_embed_proj_dim: 32, dropout: 0.1 },
  },
  {
    name: "opt without biases",
    config: {
      ...ofOpt,
      model_type: "opt",
      ffn_dim: 48,
      word_embed_proj_dim: 32,
      enable_bias: false,
      activation_function: "gelu",
      ...untied,
    },
  },
];

const older = {
  "model.language_model.": "language_model.model.",
  "model.vision_tower.": "vision_tower.",
  "model.multi_modal_projector.": "multi_modal_projector.",
  "lm_head.": "language_model.lm_head.",
};
const ofGemma3 = {
  model_type: "gemma3",
  vision_config: {
    model_type: "siglip_vision_model",
    hidden_size: 8,
    intermediate_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    image_size: 28,
    patch_size: 14,
  },
  mm_tokens_per_image: 4,
};
const gemma3Text = {
  ...sizes,
  model_type: "gemma3_text",
  head_dim: 8,
  sliding_window: 8,
  query_pre_attn_scalar: 12,
};
const ofMistral3 = {
  model_type: "mistral3",
  image_token_index: 63,
  vision_config: {
    model_type: "pixtral",
    hidden_size: 8,
    intermediate_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    head_dim: 8,
    image_size: 28,
    patch_size: 14,
  },
};
const ofQwen = {
  vision_config: {
    depth: 1,
    hidden_size: 8,
    intermediate_size: 8,
    num_heads: 1,
    out_hidden_size: 32,
    patch_size: 14,
    fullatt_block_indexes: [0],
    deepstack_visual_indexes: [0],
    num_position_embeddings: 4,
  },
};
const mrope = (type: string) => ({ rope_theta: 1e6, rope_scaling: { type, mrope_section: [1, 1, 2] } });

const multimodal: readonly RandomModel[] = [
  { name: "gemma3", config: { ...ofGemma3, text_config: { ...gemma3Text, ...linear } } },
  {
    name: "gemma3 with the names of transformers 4",
    config: { ...ofGemma3, text_config: { ...gemma3Text, sliding_window_pattern: 2, ...linear } },
    renamed: older,
  },
  {
    name: "gemma3 with a separate head",
    config: { ...ofGemma3, ...untied, text_config: { ...gemma3Text, layer_types: [...mixed.layer_types] } },
    renamed: older,
  },
  {
    name: "mistral3",
    config: {
      ...ofMistral3,
      ...untied,
      text_config: { ...sizes, model_type: "mistral", head_dim: 16, sliding_window: null, rope_theta: 1e9 },
    },
    renamed: older,
  },
  {
    name: "mistral3 of ministral3",
    config: {
      ...ofMistral3,
      ...tied,
      text_config: {
        ...sizes,
        model_type: "ministral3",
        head_dim: 16,
        rope_parameters: {
          ...yarn,
          rope_theta: 1e6,
          original_max_position_embeddings: 64,
          llama_4_scaling_beta: 0.1,
        },
      },
    },
  },
  {
    name: "qwen2_5_vl",
    config: {
      ...sizes,
      ...ofQwen,
      ...untied,
      model_type: "qwen2_5_vl",
      ...mrope("mrope"),
      use_sliding_window: false,
    },
    renamed: { "model.visual.": "visual.", "model.language_model.": "model." },
  },
  {
    name: "qwen2_5_vl with a text part and windows",
    config: {
      ...ofQwen,
      model_type: "qwen2_5_vl",
      text_config: {
        ...sizes,
        ...tied,
        model_type: "qwen2_5_vl_text",
        ...mrope("default"),
        use_sliding_window: true,
        sliding_window: 8,
        max_window_layers: 2,
      },
    },
  },
  {
    name: "qwen3_vl",
    config: {
      ...ofQwen,
      ...tied,
      model_type: "qwen3_vl",
      text_config: {
        ...sizes,
        model_type: "qwen3_vl_text",
        head_dim: 8,
        rope_theta: 5e6,
        rope_scaling: { rope_type: "default", mrope_interleaved: true, mrope_section: [2, 1, 1] },
      },
    },
  },
  {
    name: "qwen3_vl with a separate head",
    config: {
      ...ofQwen,
      ...untied,
      model_type: "qwen3_vl",
      text_config: { ...sizes, model_type: "qwen3_vl_text", head_dim: 16, attention_bias: true },
    },
  },
];

/** Several configurations of each family that has no fixtures, written as published checkpoints write them. */
export const randomModels: readonly RandomModel[] = [...text, ...opt, ...multimodal];
