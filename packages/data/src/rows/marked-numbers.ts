import { mapJson, unquoted } from "./walk-json.ts";

/**
 * Before a number that became a string, or an integer-like key: a noncharacter of Unicode, which text for interchange does not
 * contain. JavaScript reads `1.0` as 1, loses digits of large integers and puts integer-like keys first. Chat templates get what
 * Python reads: `fromJson` of the interpreter decodes the marks.
 */
const mark = "\uFDD9";

/**
 * Marks what JavaScript reads otherwise than Python in a JSON text: floats without a fraction, integers beyond 2⁵³ − 1, and
 * integer-like keys.
 *
 * @param json A string that `JSON.parse` accepts.
 */
export const markNumbers = (json: string): string =>
  mapJson(
    json,
    (between) =>
      between.replaceAll(/-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g, (token) =>
        isLost(token) ? `"${mark}${token}"` : token,
      ),
    (quoted) => (isIndex(unquoted(quoted)) ? `"${mark}${unquoted(quoted)}"` : quoted),
  );

const isLost = (literal: string): boolean =>
  /[.eE]/.test(literal) ? Number.isInteger(Number(literal)) : !Number.isSafeInteger(Number(literal));

/** Whether JavaScript's objects list a key before others. */
const isIndex = (key: string): boolean => /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1;

/** Returns a key of an object, with a mark if it is integer-like. */
export const markedKey = (key: string): string => (isIndex(key) ? mark + key : key);

/** Marks a float without a fraction. */
export function markedFloat(value: number): string {
  const digits = Object.is(value, -0) ? "-0" : String(value);
  return mark + (digits.includes("e") ? digits : `${digits}.0`);
}

/** Whether a value is a marked number. */
export const isMarkedNumber = (value: unknown): value is string =>
  typeof value === "string" && /^\uFDD9-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(value);

export const withoutMark = (text: string): string => (text.startsWith(mark) ? text.slice(1) : text);

/** Returns the first marked number or key in a text or in JSON, without its mark; null if there is none. */
export const findMarked = (text: string): string | null =>
  /(?:\uFDD9|\\ufdd9)(-?\d[-+.\deE]*)/i.exec(text)?.[1] ?? null;
