import type { Json } from "@periodic-eval/core";

/** A number that is written as a Python float: 1 becomes 1.0. */
export class PythonFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export type PythonJson = Json | PythonFloat | readonly PythonJson[] | { readonly [key: string]: PythonJson };

/** Returns JSON as written by Python's `json.dumps(value, indent=2, ensure_ascii=False)`. */
export function pythonJson(value: PythonJson, indent = ""): string {
  if (value instanceof PythonFloat) {
    const text = String(value.value);
    return /^-?\d+$/.test(text) ? `${text}.0` : text;
  }
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const list = Array.isArray(value);
  const parts = list
    ? value.map((one: PythonJson) => pythonJson(one, inner))
    : Object.entries(value as Readonly<Record<string, PythonJson | undefined>>).flatMap(([key, one]) =>
        one === undefined ? [] : `${JSON.stringify(key)}: ${pythonJson(one, inner)}`,
      );
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  return parts.length === 0
    ? `${open}${close}`
    : `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}

/** Implements Python's `str()` for JSON values. Strings inside arrays and objects are quoted as in JSON. */
export function pythonText(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string"
    ? value
    : typeof value === "number"
      ? String(value)
      : JSON.stringify(value);
}

/** Converts all numbers and booleans in nested arrays with Python's `str()`, as lm-evaluation-harness does with responses. */
export function asTexts(value: Json): Json {
  return Array.isArray(value) ? value.map((one: Json) => asTexts(one)) : pythonText(value);
}
