/** A Llama of 2 layers, 4 query heads over 2 key-value heads, its own head. For tests. */
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
