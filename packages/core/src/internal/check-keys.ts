import { PeriodicEvalError } from "../errors.ts";
import { nearest } from "./nearest.ts";
import { quoteValue } from "./quote-value.ts";

/**
 * Checks that options have no unknown key. New code uses `parseOptions`.
 *
 * @param where Names the options in the error: `session options`, `SFT config`.
 * @param known The names of all options.
 * @throws PeriodicEvalError `config` that names the nearest known option; also if `given` is not an object.
 */
export function checkKeys(where: string, given: object, known: readonly string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: quoteValue(given),
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
