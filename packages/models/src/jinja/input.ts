import { isMarkedNumber, withoutMark } from "@periodic-eval/data";
import { unsupported } from "./errors.ts";
import { integer } from "./numbers.ts";
import { Dict, Float, type Value } from "./values.ts";

/** JSON, in which marked strings stand for numbers that JavaScript's numbers are not (`markNumbers`), and bigints. */
export type Input =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Input[]
  | { readonly [key: string]: Input | undefined };

/**
 * Converts a value to Python's, and adds its length to `size`. A number is a float only if it has a fraction. Throws an
 * UnsupportedError for an integer of which JavaScript may have rounded the digits.
 */
export function fromJson(value: Input, size: { characters: number }): Value {
  size.characters += typeof value === "string" ? value.length : 1;
  if (isMarkedNumber(value)) return fromLiteral(withoutMark(value));
  if (typeof value === "bigint") return integer(value);
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return value;
    return Number.isInteger(value)
      ? unsupported(`the integer ${value}, whose digits JavaScript may have rounded, instead of a bigint`)
      : new Float(value);
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return (value as readonly Input[]).map((item) => fromJson(item, size));
  const dict = new Dict();
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) dict.set(withoutMark(key), fromJson(item, size));
  return dict;
}

const fromLiteral = (literal: string): Value =>
  /[.eE]/.test(literal) ? new Float(Number(literal)) : integer(BigInt(literal));
