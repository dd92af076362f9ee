import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";

/** @throws PeriodicEvalError `config` where the path of a file or folder is none. */
export function checkPath(where: string, path: unknown): void {
  if (typeof path === "string" && path !== "") return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(path),
    expected: "a path",
    fix: "Name where it shall be written; folders are made.",
  });
}
