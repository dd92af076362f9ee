import type { Json } from "../contracts/json.ts";

/** A copy that shares nothing with the value. */
export function copyJson<T extends Json>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** What JSON would not give back, and where in the value. */
export interface JsonFault {
  /** `.scores[3]`; empty for the value itself. */
  readonly path: string;
  /** `a bigint`, `NaN`, `a Float32Array`. */
  readonly what: string;
}

/** The first part of a value that would come back from JSON as another one; an object's undefined fields may get lost. */
export function jsonFault(
  value: unknown,
  path = "",
  above: ReadonlySet<object> = new Set(),
): JsonFault | null {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value))
    return null;
  if (typeof value === "number") return { path, what: String(value) };
  if (typeof value !== "object")
    return { path, what: value === undefined ? "undefined" : `a ${typeof value}` };
  if (above.has(value)) return { path, what: "a part of what holds it" };
  const prototype: unknown = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (!isList && prototype !== null && prototype !== Object.prototype)
    return { path, what: `a ${(value.constructor as { name?: string } | undefined)?.name ?? "class"}` };
  const inside = new Set(above).add(value);
  for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
    if (inner === undefined && !isList) continue;
    const fault = jsonFault(inner, isList ? `${path}[${name}]` : `${path}.${name}`, inside);
    if (fault !== null) return fault;
  }
  return null;
}
