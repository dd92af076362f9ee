import type { PeriodicEvalError } from "@periodic-eval/core";
import { failure, shown } from "../../folder/failure.ts";

/** A Hugging Face `config.json`. */
export type HuggingFaceConfig = Readonly<Record<string, unknown>>;

/** What the weights can hold at most; in a text file a number could ask for all memory. */
export interface SizeLimits {
  /** The largest size of a tensor. */
  readonly size: number;
  /** The number of tensors. */
  readonly layers: number;
}

/** Below this a size costs nothing, and its family says better what is wrong with it. */
const harmless = 1 << 16;

/**
 * Reads a configuration key by key and refuses what nobody read: an option that is passed over in silence is a model
 * that is computed wrongly in silence.
 */
export class ConfigReader {
  readonly #config: HuggingFaceConfig;
  readonly #where: string;
  readonly #limits: SizeLimits;
  readonly #read = new Set<string>();

  /**
   * @param where names the file or the nested key in errors
   * @param limits those of a model that is made anew are its author's
   */
  constructor(
    config: HuggingFaceConfig,
    where: string,
    limits: SizeLimits = { size: Infinity, layers: Infinity },
  ) {
    this.#config = config;
    this.#where = where;
    this.#limits = limits;
  }

  /** Null where the key is absent or null. */
  get(key: string): unknown {
    this.#read.add(key);
    return this.#config[key] ?? null;
  }

  /** Null where the key is null; the fallback where it is absent. */
  given(key: string, fallback: unknown): unknown {
    const value = this.get(key);
    return value === null && !(key in this.#config) ? fallback : value;
  }

  /** A size of weights: rows or columns of any, or what they are cut into. At most what the weights hold. */
  size(key: string, fallback?: number): number {
    return this.#atMost(this.#limits.size, "the largest size of its tensors", key, fallback);
  }

  /** Null where the key is null; the fallback where it is absent. */
  sizeOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.size(key, fallback ?? undefined);
  }

  /** How many layers; at most as many as there are weights. */
  layerCount(key: string, fallback: number): number {
    return this.#atMost(this.#limits.layers, "the number of its tensors", key, fallback);
  }

  /** A number that nothing is made of as large: contexts, windows, periods. Weights have a `size`. */
  positiveInteger(key: string, fallback?: number): number {
    const value = this.get(key) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 1)
      throw this.wrong(key, "a whole number above 0");
    return value as number;
  }

  wholeNumber(key: string, fallback: number): number {
    const value = this.get(key) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 0)
      throw this.wrong(key, "a whole number of 0 or more");
    return value as number;
  }

  positiveNumber(key: string, fallback?: number): number {
    const value = this.get(key) ?? fallback;
    if (typeof value !== "number" || !(value > 0 && value < Infinity))
      throw this.wrong(key, "a number above 0");
    return value;
  }

  /** Null where the key is null; the fallback where it is absent. */
  positiveIntegerOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.positiveInteger(key, fallback ?? undefined);
  }

  /** Null where the key is null; the fallback where it is absent. */
  positiveNumberOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.positiveNumber(key, fallback ?? undefined);
  }

  /** A list of so many entries, each of which `isRight`. Null where the key is absent or null. */
  list<T>(
    key: string,
    length: number,
    isRight: (entry: unknown) => entry is T,
    entries: string,
  ): readonly T[] | null {
    const value = this.get(key);
    if (value === null) return null;
    if (!Array.isArray(value) || value.length !== length || !value.every(isRight))
      throw this.wrong(key, `${length} entries, each ${entries}`);
    return value;
  }

  boolean(key: string, fallback: boolean): boolean {
    const value = this.get(key) ?? fallback;
    if (typeof value !== "boolean") throw this.wrong(key, "true or false");
    return value;
  }

  oneOf<T extends string>(key: string, supported: readonly T[], fallback: T): T {
    const value = (this.get(key) ?? fallback) as T;
    if (!supported.includes(value))
      throw this.unsupported(key, supported.map((word) => `"${word}"`).join(" or "));
    return value;
  }

  /** The key must be absent or one of these. */
  only(key: string, ...supported: readonly unknown[]): void {
    const value = this.get(key);
    if (value !== null && !supported.includes(value)) {
      throw this.unsupported(
        key,
        [...supported.map((option) => JSON.stringify(option)), "absent"].join(" or "),
      );
    }
  }

  /** A nested object, whose own `finish` is the caller's to call. Null where the key is absent or null. */
  nested(key: string): ConfigReader | null {
    const value = this.get(key);
    if (value === null) return null;
    if (typeof value !== "object" || Array.isArray(value)) throw this.wrong(key, "an object");
    return new ConfigReader(value as HuggingFaceConfig, this.at(key), this.#limits);
  }

  /** Throws if a key is left that was neither read nor matches one of `harmless`, and whose value is not off. */
  finish(
    harmless: readonly RegExp[] = [],
    isOff: (value: unknown) => boolean = (value) => value === null,
    known = "keys that this family is known to have",
  ): void {
    for (const [key, value] of Object.entries(this.#config)) {
      if (this.#read.has(key) || isOff(value) || harmless.some((pattern) => pattern.test(key))) continue;
      throw this.unsupported(key, known);
    }
  }

  wrong(key: string, expected: string): PeriodicEvalError {
    return this.#error(key, expected, "Correct the configuration.");
  }

  unsupported(key: string, supported: string): PeriodicEvalError {
    const fix =
      "This option is not supported: use a checkpoint without it, or remove the key if it changes nothing.";
    return this.#error(key, supported, fix);
  }

  /** `place` is a key of this object. */
  at(place: string): string {
    return `${this.#where}, ${place}`;
  }

  #atMost(most: number, what: string, key: string, fallback: number | undefined): number {
    const value = this.positiveInteger(key, fallback);
    if (value <= Math.max(most, harmless) || this.get(key) === null) return value;
    const fix = "Check that config.json and the weights are of the same model.";
    throw this.#error(key, `at most ${most}, ${what}`, fix);
  }

  #error(key: string, expected: string, fix: string): PeriodicEvalError {
    return failure(this.at(key), shown(this.#config[key]), expected, fix);
  }
}

/** Keys that any `config.json` may carry and that change no logit: names, token ids, generation, bookkeeping. */
export const harmlessKeys: readonly RegExp[] = [
  /^_/,
  /^(model_type|architectures|auto_map|transformers_version|transformers\.js_config|is_llama_config)$/,
  /^(torch_dtype|dtype|initializer_range|use_cache|gradient_checkpointing|attn_implementation)$/,
  /^(bos|eos|pad|unk|sep|cls|mask|decoder_start|forced_bos|forced_eos)_token_id$/,
  /^(output_hidden_states|output_attentions|output_scores|return_dict|return_dict_in_generate|use_return_dict)$/,
  /^(max_length|min_length|max_new_tokens|do_sample|early_stopping|num_beams|num_beam_groups|diversity_penalty)$/,
  /^(temperature|top_k|top_p|typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size)$/,
  /^(encoder_no_repeat_ngram_size|bad_words_ids|num_return_sequences|begin_suppress_tokens|suppress_tokens)$/,
  /^(exponential_decay_length_penalty|remove_invalid_values|prefix|task_specific_params|finetuning_task)$/,
  /^(id2label|label2id|num_labels|problem_type|classifier_dropout|tokenizer_class|torchscript|tf_legacy_loss)$/,
  /^(is_encoder_decoder|is_decoder|tie_encoder_decoder|cross_attention_hidden_size|pruned_heads)$/,
  /^(chunk_size_feed_forward|use_bfloat16|pretraining_tp|cache_implementation|unsloth_fixed|unsloth_version)$/,
];
