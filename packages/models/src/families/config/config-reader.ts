import type { PeriodicEvalError, ValuePath } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/core/internal";
import { modelError, quoteShort } from "../../folder/model-error.ts";

/** A Hugging Face `config.json`. */
export type HuggingFaceConfig = Readonly<Record<string, unknown>>;

/** Upper bounds, because a number in a text file could request all memory. Those of a checkpoint are taken from its weights. */
export interface SizeLimits {
  /** The largest dimension of a tensor. */
  readonly size: number;
  /** The number of tensors. */
  readonly layers: number;
  /** Default: that configuration and weights belong together. */
  readonly fix?: string;
}

/** Sizes up to this one need no limit: they cost nothing, and the family's own errors are more specific. */
const harmlessSize = 1 << 16;

/** Where a nested reader is within the file. */
interface Place {
  readonly limits?: SizeLimits;
  readonly path?: ValuePath;
}

/**
 * Reads a configuration key by key and rejects keys that nobody read: an option that is ignored silently is a model that
 * is computed wrongly.
 */
export class ConfigReader {
  readonly #config: HuggingFaceConfig;
  readonly #where: string;
  readonly #limits: SizeLimits;
  readonly #path: ValuePath;
  readonly #read = new Set<string>();

  /**
   * @param where Names the file or the nested key in errors.
   * @param place `limits`: default none.
   */
  constructor(
    config: HuggingFaceConfig,
    where: string,
    { limits = { size: Infinity, layers: Infinity }, path = [] }: Place = {},
  ) {
    this.#config = config;
    this.#where = where;
    this.#limits = limits;
    this.#path = path;
  }

  /** Returns the value of a key; null if it is absent. */
  get(key: string): unknown {
    this.#read.add(key);
    return this.#config[key] ?? null;
  }

  /** Returns the value of a key, which may be null; the fallback if it is absent. */
  given(key: string, fallback: unknown): unknown {
    const value = this.get(key);
    return value === null && !(key in this.#config) ? fallback : value;
  }

  /** Returns a dimension of weights, or a number of parts that they are cut into; at most `limits.size`. */
  size(key: string, fallback?: number): number {
    return this.#atMost(this.#limits.size, "the largest size of its tensors", key, fallback);
  }

  /** Returns null if the key is null, the fallback if it is absent. */
  sizeOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.size(key, fallback ?? undefined);
  }

  /** Returns the number of layers; at most `limits.layers`. */
  layerCount(key: string, fallback: number): number {
    return this.#atMost(this.#limits.layers, "the number of its tensors", key, fallback);
  }

  /** Returns a positive integer that sizes no allocation, such as a context, window or period. For weights use `size`. */
  positiveInteger(key: string, fallback?: number): number {
    const value = this.get(key) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 1)
      throw this.valueError(key, "a positive integer");
    return value as number;
  }

  nonNegativeInteger(key: string, fallback: number): number {
    const value = this.get(key) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 0)
      throw this.valueError(key, "an integer of 0 or more");
    return value as number;
  }

  positiveNumber(key: string, fallback?: number): number {
    const value = this.get(key) ?? fallback;
    if (typeof value !== "number" || !(value > 0 && value < Infinity))
      throw this.valueError(key, "a number above 0");
    return value;
  }

  /** Returns null if the key is null, the fallback if it is absent. */
  positiveIntegerOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.positiveInteger(key, fallback ?? undefined);
  }

  /** Returns null if the key is null, the fallback if it is absent. */
  positiveNumberOrNull(key: string, fallback: number | null): number | null {
    return this.given(key, fallback) === null ? null : this.positiveNumber(key, fallback ?? undefined);
  }

  /** Returns an array of `length` entries that all satisfy `isRight`; null if the key is absent or null. */
  list<T>(
    key: string,
    length: number,
    isRight: (entry: unknown) => entry is T,
    entries: string,
  ): readonly T[] | null {
    const value = this.get(key);
    if (value === null) return null;
    if (!Array.isArray(value) || value.length !== length || !value.every(isRight))
      throw this.valueError(key, `an array of ${length} entries, each ${entries}`);
    return value;
  }

  boolean(key: string, fallback: boolean): boolean {
    const value = this.get(key) ?? fallback;
    if (typeof value !== "boolean") throw this.valueError(key, "true or false");
    return value;
  }

  oneOf<T extends string>(key: string, supported: readonly T[], fallback: T): T {
    const value = (this.get(key) ?? fallback) as T;
    if (!supported.includes(value))
      throw this.unsupportedError(key, supported.map((word) => `"${word}"`).join(" or "));
    return value;
  }

  /** Throws unless the key is absent, null or one of the supported values. */
  only(key: string, ...supported: readonly unknown[]): void {
    const value = this.get(key);
    if (value !== null && !supported.includes(value)) {
      throw this.unsupportedError(
        key,
        [...supported.map((option) => JSON.stringify(option)), "absent"].join(" or "),
      );
    }
  }

  /** Returns a reader of a nested object, whose `finish` the caller calls; null if the key is absent or null. */
  nested(key: string): ConfigReader | null {
    const value = this.get(key);
    if (value === null) return null;
    if (!isRecord(value)) throw this.valueError(key, "an object");
    return new ConfigReader(value, this.at(key), { limits: this.#limits, path: [...this.#path, key] });
  }

  /** Throws for a key that nobody read, unless it matches one of `harmless` or its value switches the option off. */
  finish(
    harmless: readonly RegExp[] = [],
    isOff: (value: unknown) => boolean = (value) => value === null,
    known = "only keys that this family supports",
  ): void {
    for (const [key, value] of Object.entries(this.#config)) {
      if (this.#read.has(key) || isOff(value) || harmless.some((pattern) => pattern.test(key))) continue;
      throw this.unsupportedError(key, known);
    }
  }

  /** Returns the error for a value that no model could have. */
  valueError(key: string, expected: string): PeriodicEvalError {
    return this.#error(key, expected, "Correct the configuration.");
  }

  /** Returns the error for a value that this package does not support. */
  unsupportedError(key: string, supported: string): PeriodicEvalError {
    const fix =
      "This option is not supported: use a checkpoint without it, or remove the key if it changes nothing.";
    return this.#error(key, supported, fix);
  }

  /** Returns the place of a key, for errors. */
  at(key: string): string {
    return `${this.#where}, ${key}`;
  }

  #atMost(most: number, what: string, key: string, fallback: number | undefined): number {
    const value = this.positiveInteger(key, fallback);
    if (value <= Math.max(most, harmlessSize) || this.get(key) === null) return value;
    const { fix = "Check that config.json and the weights belong to the same model." } = this.#limits;
    throw this.#error(key, `at most ${most}, ${what}`, fix);
  }

  #error(key: string, expected: string, fix: string): PeriodicEvalError {
    const got = quoteShort(this.#config[key]);
    return modelError({ where: this.at(key), path: [...this.#path, key], got, expected, fix });
  }
}

/** Keys that any `config.json` may have and that change no logit: names, token ids, generation settings, bookkeeping. */
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
