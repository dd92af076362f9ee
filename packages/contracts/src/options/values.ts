import type { ValuePath } from "../errors.ts";

/** Whether a value is an object with string keys, and neither an array nor `null`. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value at a path within a value of unknown shape; undefined if there is none. */
export const valueAt = (value: unknown, path: ValuePath): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Readonly<Record<string | number, unknown>>)[key]
        : undefined,
    value,
  );

/** Whether a value is a safe integer that is at least `least`. */
export function isCount(value: unknown, least = 0): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

/** Whether a value is a string that is not blank. */
export const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

/** Whether a value is a non-empty array of strings that are not blank. */
export const isFilledList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFilled);

/** Servers compute with 16-bit numbers and round to few digits, so a log-probability of 0 can arrive as a number above 0. */
export const natsTolerance = 0.02;

/** Whether a value of a server's reply is a log-probability. */
export const isNats = (value: unknown): value is number =>
  Number.isFinite(value) && (value as number) <= natsTolerance;

/** Returns the length of the common beginning of two texts, in UTF-16 units, or of two lists. */
export function sharedStart(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

/** Returns the length of the common end of two texts, in UTF-16 units. */
export function sharedEnd(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.at(-1 - length) === b.at(-1 - length)) length += 1;
  return length;
}

/**
 * The whitespace of Python (`str.strip`, `str.split`, `\s` in `re`) as a character class of a regular expression. JavaScript's
 * `trim` and `\s` differ from it in U+001C–U+001F, U+0085 and U+FEFF.
 */
export const pythonWhitespace =
  "[\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
