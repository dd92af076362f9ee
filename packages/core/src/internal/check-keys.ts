import { PeriodicEvalError } from "../errors.ts";
import { nearest } from "./nearest.ts";

/**
 * Refuses an option that does not exist.
 *
 * @param where names the options in the error: `session options`, `SFT config`.
 * @param known the names of all options there are.
 * @throws PeriodicEvalError `config`, naming the nearest that does exist; also where `given` is no object.
 */
export function checkKeys(where: string, given: object, known: readonly string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: shown(given),
      expected: `an object of options (${known.join(", ")})`,
      fix: "Pass { name: value }.",
    });
  }
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    const close = nearest(key, known);
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: `the unknown option "${key}"`,
      expected: `one of ${known.join(", ")}`,
      fix: close === null ? "Remove it." : `Did you mean "${close}"?`,
    });
  }
}

/** A value as an error quotes it. JSON would print NaN as null, and throws where it meets a BigInt or a cycle. */
export function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
