import type { Json } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";

export const isMap = (value: Json | undefined): value is { readonly [key: string]: Json } => isRecord(value);

/** Returns the value of an own key. Keys come from files, which may contain one named `constructor`. */
export const ownValue = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** Returns a string field of a JSON object, or null. */
export function jsonField(json: Json | undefined, key: string): string | null {
  const value = isMap(json) ? ownValue(json, key) : null;
  return typeof value === "string" ? value : null;
}
