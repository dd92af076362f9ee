import type { HuggingFaceConfig } from "@periodic-eval/models";
import { specialTokens, vocabSize } from "./tokenizer-files.ts";

const idOf = (token: (typeof specialTokens)[number]): number =>
  vocabSize - specialTokens.length + specialTokens.indexOf(token);

/** Standard deviation of the initial weights, large enough for attention to differ between tokens before training. */
export const initStd = 0.08;

/** A Llama with 0.43 M parameters (0.86 MB as bfloat16). */
export const modelConfig: HuggingFaceConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: vocabSize,
  hidden_size: 96,
  intermediate_size: 256,
  num_hidden_layers: 3,
  num_attention_heads: 6,
  num_key_value_heads: 6,
  head_dim: 16,
  max_position_embeddings: 256,
  hidden_act: "silu",
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  attention_bias: false,
  mlp_bias: false,
  attention_dropout: 0,
  tie_word_embeddings: true,
  bos_token_id: null,
  eos_token_id: [idOf("<|end|>"), idOf("<|endoftext|>")],
  pad_token_id: idOf("<|endoftext|>"),
  torch_dtype: "bfloat16",
};
