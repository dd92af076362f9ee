import type { Json } from "../json.ts";

export function copyJson<T extends Json>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Returns a copy of a value that has no `jsonFault`, as JSON would give it back. Strings are shared. */
export function jsonRoundTrip<T>(value: T): T {
  if (typeof value === "number") return (value + 0) as T; // JSON has no -0
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((inner: unknown) => jsonRoundTrip(inner)) as T;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([name, inner]) => [name, jsonRoundTrip(inner)])) as T;
}

/** A part of a value that JSON would change or lose. */
interface JsonFault {
  /** Where the part is: `.scores[3]`; empty for the value itself. */
  readonly path: string;
  /** Describes the part: `a bigint`, `NaN`, `a Float32Array`. */
  readonly what: string;
}

/**
 * Returns the first part of a value that would not survive `JSON.stringify` and `JSON.parse`, or null. Properties with the
 * value `undefined` are accepted, although JSON drops them.
 */
export function jsonFault(
  value: unknown,
  path = "",
  ancestors: ReadonlySet<object> = new Set(),
): JsonFault | null {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value))
    return null;
  if (typeof value === "number") return { path, what: String(value) };
  if (typeof value !== "object")
    return { path, what: value === undefined ? "undefined" : `a ${typeof value}` };
  if (ancestors.has(value)) return { path, what: "a circular reference" };
  const prototype: unknown = Object.getPrototypeOf(value);
  const isArray = Array.isArray(value);
  if (!isArray && prototype !== null && prototype !== Object.prototype)
    return { path, what: `a ${(value.constructor as { name?: string } | undefined)?.name ?? "class"}` };
  const inside = new Set(ancestors).add(value);
  for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
    if (inner === undefined && !isArray) continue;
    const fault = jsonFault(inner, isArray ? `${path}[${name}]` : `${path}.${name}`, inside);
    if (fault !== null) return fault;
  }
  return null;
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
