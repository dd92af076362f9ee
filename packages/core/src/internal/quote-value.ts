/**
 * Returns a value as an error message quotes it. Handles what `JSON.stringify` renders as `null` (NaN, Infinity) and what it
 * throws for (a BigInt, a cycle).
 */
export function quoteValue(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "function") return "a function";
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
