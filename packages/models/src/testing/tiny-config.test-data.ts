import type { HuggingFaceConfig } from "../families/config/config-reader.ts";

/** A Llama with 2 layers, 4 query heads, 2 key-value heads and a separate head. */
export const tinyConfig = {
  model_type: "llama",
  vocab_size: 32,
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 16,
  rms_norm_eps: 1e-5,
  rope_theta: 100,
  tie_word_embeddings: false,
  torch_dtype: "float32",
};

const { model_type: _, ...sizes } = tinyConfig;
const { num_key_value_heads: __, rope_theta: ___, rms_norm_eps: ____, ...withoutLlamas } = sizes;

const { rope_theta: _theta, ...withoutTheta } = sizes;
const { rms_norm_eps: _epsilon, ...ofLayerNorm } = sizes;
const ministral3Rope = {
  rope_type: "yarn",
  rope_theta: 100,
  factor: 4,
  original_max_position_embeddings: 128,
  llama_4_scaling_beta: 0.1,
};
const graniteScales = {
  embedding_multiplier: 3,
  attention_multiplier: 0.3,
  residual_multiplier: 0.5,
  logits_scaling: 2,
};

/** A configuration of each family with the same sizes. */
export const tinyConfigs = {
  llama: tinyConfig,
  mistral: { ...sizes, model_type: "mistral" },
  qwen2: { ...sizes, model_type: "qwen2", rope_theta: 10_000 },
  qwen3: { ...sizes, model_type: "qwen3", head_dim: 4 },
  gpt2: { model_type: "gpt2", vocab_size: 32, n_embd: 8, n_layer: 2, n_head: 2, n_positions: 16 },
  gpt_neox: { ...withoutLlamas, model_type: "gpt_neox", num_attention_heads: 1 },
  gemma: { ...sizes, model_type: "gemma", head_dim: 4, tie_word_embeddings: true },
  gemma2: { ...sizes, model_type: "gemma2", head_dim: 4, tie_word_embeddings: true },
  gemma3_text: { ...withoutLlamas, model_type: "gemma3_text", num_key_value_heads: 2, head_dim: 4 },
  phi3: { ...withoutLlamas, model_type: "phi3", num_attention_heads: 2 },
  olmo2: { ...sizes, model_type: "olmo2" },
  smollm3: { ...sizes, model_type: "smollm3" },
  ministral: { ...sizes, model_type: "ministral" },
  ministral3: { ...withoutTheta, model_type: "ministral3", head_dim: 4, rope_parameters: ministral3Rope },
  gemma3: {
    model_type: "gemma3",
    vision_config: {},
    text_config: { ...withoutLlamas, model_type: "gemma3_text", num_key_value_heads: 2, head_dim: 4 },
  },
  mistral3: {
    model_type: "mistral3",
    tie_word_embeddings: false,
    text_config: { ...sizes, model_type: "mistral" },
  },
  qwen2_5_vl: {
    ...sizes,
    model_type: "qwen2_5_vl",
    rope_scaling: { type: "mrope", mrope_section: [1, 0, 0] },
  },
  qwen3_vl: {
    model_type: "qwen3_vl",
    text_config: { ...sizes, model_type: "qwen3_vl_text", head_dim: 4 },
  },
  seed_oss: { ...sizes, model_type: "seed_oss", head_dim: 4 },
  olmo3: { ...sizes, model_type: "olmo3" },
  exaone4: { ...sizes, model_type: "exaone4" },
  vaultgemma: { ...sizes, model_type: "vaultgemma", head_dim: 4, tie_word_embeddings: true },
  starcoder2: { ...ofLayerNorm, model_type: "starcoder2", tie_word_embeddings: true },
  stablelm: { ...ofLayerNorm, model_type: "stablelm", partial_rotary_factor: 1 },
  granite: { ...sizes, model_type: "granite", ...graniteScales },
  arcee: { ...sizes, model_type: "arcee" },
  phi: { ...ofLayerNorm, model_type: "phi", partial_rotary_factor: 1 },
  opt: {
    model_type: "opt",
    vocab_size: 32,
    hidden_size: 8,
    ffn_dim: 12,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    max_position_embeddings: 16,
  },
  nemotron: { ...ofLayerNorm, model_type: "nemotron", head_dim: 4 },
  cohere: { ...ofLayerNorm, model_type: "cohere", tie_word_embeddings: true, logit_scale: 0.5 },
  cohere2: { ...ofLayerNorm, model_type: "cohere2", tie_word_embeddings: true, logit_scale: 0.5 },
  glm: { ...sizes, model_type: "glm", head_dim: 4 },
  glm4: { ...sizes, model_type: "glm4", head_dim: 4 },
} as const;

/** Returns a configuration with changed options of its text. */
export const withTextOptions = (config: HuggingFaceConfig, options: HuggingFaceConfig): HuggingFaceConfig => {
  const part = config["text_config"];
  return part === undefined ? { ...config, ...options } : { ...config, text_config: { ...part, ...options } };
};

const windows = { sliding_window: 2 };
const unusual: Readonly<Record<string, object>> = {
  mistral: windows,
  gemma2: { ...windows, attn_logit_softcapping: 0.5, final_logit_softcapping: 1 },
  gemma3_text: { ...windows, sliding_window_pattern: 2 },
  gpt_neox: { rotary_pct: 0.5, attention_bias: true },
  smollm3: { no_rope_layer_interval: 2 },
  ministral: { ...windows, layer_types: ["sliding_attention", "full_attention"] },
  olmo3: { ...windows, layer_types: ["sliding_attention", "full_attention"] },
  exaone4: { ...windows, sliding_window_pattern: 2 },
  vaultgemma: { ...windows, attn_logit_softcapping: 0.5, final_logit_softcapping: 1 },
  starcoder2: windows,
  stablelm: { use_parallel_residual: true, use_qkv_bias: true },
  nemotron: { attention_bias: true, mlp_bias: true },
  cohere: { attention_bias: true },
  cohere2: { ...windows, sliding_window_pattern: 2 },
};

/** The same configurations with windows of two tokens, effective soft caps and other optional features. */
export const unusualFamilies = Object.entries(tinyConfigs).map(([family, config]) => {
  return { family, config: { ...config, ...unusual[family] } };
});
