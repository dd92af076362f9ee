import type { PeriodicEvalError, ValuePath } from "@periodic-eval/core";
import { isCount, isRecord, pathText } from "@periodic-eval/contracts/options";
import { modelError, quoteShort } from "../../folder/model-error.ts";

/** A component of a `tokenizer.json`, with its place in the file. Its methods read options and refuse wrong ones. */
export class Part {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    readonly file: string,
    readonly path: ValuePath,
    value: unknown,
  ) {
    if (!isRecord(value)) throw partError(file, path, quoteShort(value), "an object");
    this.fields = value;
  }

  get type(): string {
    return this.string("type");
  }

  string(key: string): string {
    return this.read(key, "a string", (value): value is string => typeof value === "string");
  }

  /** Returns a string of one character. */
  char(key: string): string {
    return this.read(
      key,
      "one character",
      (value): value is string => typeof value === "string" && [...value].length === 1,
    );
  }

  /** @param otherwise The value if there is none; a missing value without it is an error, as in tokenizers. */
  boolean(key: string, otherwise?: boolean): boolean {
    return this.read(key, "true or false", (value) => typeof value === "boolean", otherwise);
  }

  integer(key: string, otherwise?: number): number {
    return this.read(key, "an integer of 0 or more", (value) => isCount(value), otherwise);
  }

  choice<T extends string>(key: string, choices: readonly T[], otherwise?: T): T {
    const isChoice = (value: unknown): value is T => choices.includes(value as T);
    return this.read(key, choices.join(", "), isChoice, otherwise);
  }

  /** Returns a string, or null if it is missing or null. */
  optionalString(key: string): string | null {
    return this.fields[key] == null ? null : this.string(key);
  }

  part(key: string): Part {
    return new Part(this.file, [...this.path, key], this.fields[key]);
  }

  /** Returns a component, or null if it is missing or null. */
  optionalPart(key: string): Part | null {
    return this.fields[key] == null ? null : this.part(key);
  }

  list(key: string): readonly unknown[] {
    return this.read(key, "an array", (value): value is unknown[] => Array.isArray(value));
  }

  parts(key: string): Part[] {
    return this.list(key).map((value, i) => new Part(this.file, [...this.path, key, i], value));
  }

  private read<T>(key: string, expected: string, is: (value: unknown) => value is T, otherwise?: T): T {
    const value = this.fields[key];
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (is(value)) return value;
    throw partError(this.file, [...this.path, key], quoteShort(value), expected);
  }

  /** Returns the error for an option that is wrong or that this library does not support. */
  error(key: string, got: string, expected: string, fix?: string): PeriodicEvalError {
    return partError(this.file, [...this.path, key], got, expected, fix);
  }

  /** Reads a component with the reader of its type, and refuses a type without one. */
  component<T>(readers: Readonly<Record<string, (part: Part) => T>>, type = this.type): T {
    if (Object.hasOwn(readers, type)) return readers[type]!(this);
    throw this.error(
      "type",
      quoteShort(this.fields["type"]),
      Object.keys(readers).join(", "),
      "Use a model whose tokenizer has only these components, or convert its tokenizer: this component is not supported.",
    );
  }
}

export function partError(
  file: string,
  path: ValuePath,
  got: string,
  expected: string,
  fix = "Download or write the file again: it is damaged, or it is not a tokenizer.",
): PeriodicEvalError {
  const field = pathText(path).replace(/^\./, "");
  return modelError({ where: field === "" ? file : `${file}, ${field}`, path, got, expected, fix });
}
