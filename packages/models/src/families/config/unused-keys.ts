import type { ConfigReader } from "./config-reader.ts";
import { layerTypes } from "./model-options.ts";

/**
 * Ends the reading of a model's configuration. A family reads every key that its class in transformers defines, so any other
 * key changes nothing there: it is noted, or accepted silently if it is well known or false. Options that transformers reads from
 * the configuration of any class are refused.
 *
 * @param harmless Further keys of the family without effect.
 * @throws PeriodicEvalError `model` for such an option, and for any unknown key if nobody receives notes.
 */
export function finishConfig(config: ConfigReader, layers: number, harmless: readonly RegExp[] = []): void {
  const left = config
    .unread()
    .filter((key) => ![...harmlessKeys, ...harmless].some((pattern) => pattern.test(key)));
  if (left.includes("layer_types") && layerTypes(config, layers, () => "full_attention").some(isSliding))
    throw config.unsupportedError("layer_types", 'only "full_attention"');
  config.only("is_causal", true);
  const unknown = config.unread().filter((key) => left.includes(key) && config.get(key) !== false);
  const option = unknown.find((key) => optionsOfAnyClass.test(key));
  if (option !== undefined) throw config.unsupportedError(option, supported);
  config.unused(
    unknown,
    supported,
    "not used; transformers does not read this from a model of this family either.",
  );
}

/** Ends the reading of what surrounds the configuration of a text part: only how weights are stored matters. */
export function finishOuterConfig(config: ConfigReader): void {
  const left = config.unread().filter((key) => !harmlessKeys.some((pattern) => pattern.test(key)));
  const option = left.find((key) => optionsOfWeights.test(key));
  if (option !== undefined) throw config.unsupportedError(option, supported);
  const unknown = left.filter((key) => config.get(key) !== false);
  config.unused(unknown, supported, "not used for text.");
}

/**
 * Reads dropout rates, which change training only. Other rates than 0 are noted: the caller sets `dropout`.
 *
 * @throws PeriodicEvalError `model` for another rate than 0 if nobody receives notes.
 */
export function unusedDropout(config: ConfigReader, keys: readonly string[]): void {
  const rates = keys.filter((key) => (config.get(key) ?? 0) !== 0);
  config.unused(rates, "0 or absent", "not used; the option `dropout` sets the rate of dropout in training.");
}

const supported = "only keys that this family supports";
const isSliding = (type: string): boolean => type === "sliding_attention";

const optionsOfWeights = /^(quantization_config|fusion_config|transformers_weights)$/;

/** Options that the general code of transformers 5.24 reads: masks, caches, rotary positions, other weights. */
const optionsOfAnyClass =
  /^(layer_types|sliding_window|attention_chunk_size|is_causal|use_bidirectional_attention|per_layer_config|head_dim|rope_\w+|partial_rotary_factor|original_max_position_embeddings|quantization_config|fusion_config|transformers_weights|tie_word_embeddings)$/;

/** Keys that any `config.json` may have and that change no logit: names, token ids, generation settings, bookkeeping. */
const harmlessKeys: readonly RegExp[] = [
  /^_/,
  /^(model_type|architectures|auto_map|transformers_version|transformers\.js_config|is_llama_config|name_or_path)$/,
  /^(torch_dtype|dtype|initializer_range|use_cache|gradient_checkpointing|attn_implementation|use_flash_attn)$/,
  /^(\w+_token_id|output_hidden_states|output_attentions|output_scores|return_dict|return_dict_in_generate)$/,
  /^(use_return_dict|max_length|min_length|max_new_tokens|do_sample|early_stopping|num_beams|num_beam_groups)$/,
  /^(diversity_penalty|temperature|top_k|top_p|typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size)$/,
  /^(encoder_no_repeat_ngram_size|bad_words_ids|num_return_sequences|begin_suppress_tokens|suppress_tokens)$/,
  /^(exponential_decay_length_penalty|remove_invalid_values|prefix|task_specific_params|finetuning_task)$/,
  /^(id2label|label2id|num_labels|problem_type|classifier_dropout|tokenizer_class|torchscript|tf_legacy_loss)$/,
  /^(is_encoder_decoder|is_decoder|tie_encoder_decoder|cross_attention_hidden_size|pruned_heads)$/,
  /^(chunk_size_feed_forward|use_bfloat16|pretraining_tp|cache_implementation|unsloth_\w+|model_max_length)$/,
];
