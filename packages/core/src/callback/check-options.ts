import { PeriodicEvalError } from "../errors.ts";
import { nearest } from "../nearest.ts";

const namePattern = /^[A-Za-z0-9][\w.-]*$/;

/** Refuses an option that does not exist, naming the nearest that does. */
export function checkKeys(where: string, given: object, known: readonly string[]): void {
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

/** Refuses what cannot stand in a file name. */
export function checkName(where: string, name: unknown): void {
  if (typeof name === "string" && namePattern.test(name)) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: JSON.stringify(name) ?? String(name),
    expected: `a name that matches ${namePattern.source}`,
    fix: "Use letters, digits, dots, dashes and underscores, beginning with a letter or a digit: it becomes a file name.",
  });
}
