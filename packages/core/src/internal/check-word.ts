import { quoteValue } from "./quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";
import { nearest } from "./nearest.ts";

/**
 * Checks that a string is one of the allowed ones. New code uses `parseOptions` with `z.enum`.
 *
 * @param where Names the option in the error: `session option baseline`.
 * @throws PeriodicEvalError `config` that names the nearest allowed string.
 */
export function checkWord(where: string, word: unknown, allowed: readonly string[]): void {
  if (allowed.includes(word as string)) return;
  const guess = (typeof word === "string" ? nearest(word, allowed) : null) ?? allowed[0];
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(word),
    expected: allowed.map((one) => `"${one}"`).join(" or "),
    fix: `Write "${guess}".`,
  });
}
