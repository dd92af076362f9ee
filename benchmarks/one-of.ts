import { PeriodicEvalError } from "@periodic-eval/core";

/**
 * Returns the value that an argument names.
 *
 * @throws PeriodicEvalError `config` if `all` has no such name.
 */
export function oneOf<T>(argument: string, name: string, all: Readonly<Record<string, T>>): T {
  const value = all[name];
  if (value !== undefined) return value;
  throw new PeriodicEvalError({
    code: "config",
    where: argument,
    got: name,
    expected: Object.keys(all).join(", "),
    fix: "Use one of these.",
  });
}
