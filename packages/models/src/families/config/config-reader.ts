import type { PeriodicEvalError, ValuePath } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import { modelError, quoteShort } from "../../folder/model-error.ts";

/** A Hugging Face `config.json`. */
export type HuggingFaceConfig = Readonly<Record<string, unknown>>;

/** Where a nested reader is within the file. */
interface Place {
  readonly path?: ValuePath;
  /** Receives sentences about options that are not used. Default: such options are refused. */
  readonly notes?: string[];
}

/**
 * Reads a configuration key by key and rejects keys that nobody read: an option that is ignored silently is a model that
 * is computed wrongly.
 */
export class ConfigReader {
  readonly #config: HuggingFaceConfig;
  readonly #where: string;
  readonly #path: ValuePath;
  readonly #notes: string[] | undefined;
  readonly #read = new Set<string>();

  /** @param where Names the file or the nested key in errors. */
  constructor(config: HuggingFaceConfig, where: string, { path = [], notes }: Place = {}) {
    this.#config = config;
    this.#where = where;
    this.#path = path;
    this.#notes = notes;
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

  nonNegativeNumber(key: string): number {
    const value = this.get(key);
    if (typeof value !== "number" || !(value >= 0 && value < Infinity))
      throw this.valueError(key, "a number of 0 or more");
    return value;
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
    const notes = this.#notes && { notes: this.#notes };
    return new ConfigReader(value, this.at(key), {
      path: [...this.#path, key],
      ...notes,
    });
  }

  /**
   * Reports keys that are not used in one note, which follows their names.
   *
   * @throws PeriodicEvalError `model` for the first key if nobody receives notes.
   */
  unused(keys: readonly string[], supported: string, note: string): void {
    const [first] = keys;
    if (first === undefined) return;
    if (this.#notes === undefined) throw this.unsupportedError(first, supported);
    this.#notes.push(`${this.at(keys.join(", "))}: ${note}`);
  }

  /** Returns the keys that nobody read and that are not null. */
  unread(): readonly string[] {
    return Object.keys(this.#config).filter((key) => !this.#read.has(key) && this.#config[key] !== null);
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

  #error(key: string, expected: string, fix: string): PeriodicEvalError {
    const got = quoteShort(this.#config[key]);
    return modelError({ where: this.at(key), path: [...this.#path, key], got, expected, fix });
  }
}
