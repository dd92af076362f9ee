import { Dict, Float, LostInteger, type Value } from "./values.ts";

/** JSON, and integers of any size as bigint. */
export type Input =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Input[]
  | { readonly [key: string]: Input | undefined };

/** Converts a value to Python's, and adds its length to `size`. A number is a float only if it has a fraction. */
export function fromJson(value: Input, size: { characters: number }): Value {
  size.characters += typeof value === "string" ? value.length : 1;
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return value;
    return Number.isInteger(value) ? new LostInteger() : new Float(value);
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return (value as readonly Input[]).map((item) => fromJson(item, size));
  const dict = new Dict();
  for (const [key, item] of Object.entries(value))
    if (item !== undefined) dict.set(key, fromJson(item, size));
  return dict;
}
