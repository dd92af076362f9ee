/**
 * Returns a value as an error message quotes it: JSON, cut to `maxLength` characters. Also handles values that `JSON.stringify`
 * renders as `null` (NaN, Infinity), omits (functions, symbols) or throws for (a BigInt, a circular reference).
 */
export function quoteValue(value: unknown, maxLength = 200): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  const text = jsonOf(value);
  return text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "an object that JSON cannot represent";
  }
}

/** Shortens a string to `length` characters. */
export const abbreviated = (text: string, length = 60): string =>
  text.length > length ? `${text.slice(0, length - 3)}…` : text;

/** Shortens a message of a server or a model, of any length, for an error. */
export const shortMessage = (text: string): string => abbreviated(text, 300);
