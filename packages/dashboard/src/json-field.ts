import type { Json } from "@periodic-eval/core";

/** A text field of a JSON object; null where there is none. */
export function jsonField(json: Json, key: string): string | null {
  if (json === null || typeof json !== "object" || Array.isArray(json)) return null;
  const value = (json as Readonly<Record<string, Json>>)[key];
  return typeof value === "string" ? value : null;
}
