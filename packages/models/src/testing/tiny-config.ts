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
} as const;

const windows = { sliding_window: 2 };
const unusual: Readonly<Record<string, object>> = {
  mistral: windows,
  gemma2: { ...windows, attn_logit_softcapping: 0.5, final_logit_softcapping: 1 },
  gemma3_text: { ...windows, sliding_window_pattern: 2 },
  gpt_neox: { rotary_pct: 0.5, attention_bias: true },
  smollm3: { no_rope_layer_interval: 2 },
};

/** The same configurations with windows of two tokens, effective soft caps and other optional features. */
export const unusualFamilies = Object.entries(tinyConfigs).map(([family, config]) => {
  return { family, config: { ...config, ...unusual[family] } };
});
