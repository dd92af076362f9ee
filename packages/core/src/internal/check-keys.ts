import { PeriodicEvalError } from "../errors.ts";
import { nearest } from "./nearest.ts";
import { quoteValue } from "./quote-value.ts";

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
