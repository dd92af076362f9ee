import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";

/** Where two values differ, each as `tasks.gsm8k.limit: 10 → 100`. */
export function differences(before: Json, now: Json, path = ""): readonly string[] {
  if (isMap(before) && isMap(now)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
    return keys.flatMap((key) =>
      differences(before[key] ?? null, now[key] ?? null, path === "" ? key : `${path}.${key}`),
    );
  }
  const [from, to] = [canonicalJson(before), canonicalJson(now)];
  return from === to ? [] : [`${path}: ${shortened(from)} → ${shortened(to)}`];
}

const isMap = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
