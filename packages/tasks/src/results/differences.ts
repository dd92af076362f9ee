import type { Json } from "@periodic-eval/core";
import { abbreviated, isRecord } from "@periodic-eval/contracts/options";
import { canonicalJson } from "@periodic-eval/core/random";

/** Lists where two values differ, each as `tasks.gsm8k.limit: 10 → 100`. */
export function differences(before: Json, now: Json, path = ""): readonly string[] {
  if (isMap(before) && isMap(now)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
    return keys.flatMap((key) =>
      differences(ownValue(before, key), ownValue(now, key), path === "" ? key : `${path}.${key}`),
    );
  }
  const [from, to] = [canonicalJson(before), canonicalJson(now)];
  return from === to ? [] : [`${path}: ${abbreviated(from)} → ${abbreviated(to)}`];
}

const ownValue = (map: { readonly [key: string]: Json }, key: string): Json =>
  Object.hasOwn(map, key) ? map[key]! : null;

const isMap = (value: Json): value is { readonly [key: string]: Json } => isRecord(value);
