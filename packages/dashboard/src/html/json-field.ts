import type { Json } from "@periodic-eval/core";

export const isMap = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value of a map's own key: a file may name a key `constructor`. */
export const ownValue = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** A text field of a JSON object; null where there is none. */
export function jsonField(json: Json | undefined, key: string): string | null {
  const value = isMap(json) ? ownValue(json, key) : null;
  return typeof value === "string" ? value : null;
}
