import { PeriodicEvalError, type ErrorCode, type ValuePath } from "../errors.ts";
import { quoteValue } from "./messages.ts";

interface ConfigErrorDetails {
  /** The options that were checked: `session options`, `SFTTrainer config`. */
  readonly where: string;
  /** Keys and indexes of the wrong option within these options. Default: the options as a whole. */
  readonly path?: ValuePath;
  /** The wrong value, which the message quotes. */
  readonly value?: unknown;
  /** A description to use instead of the quoted value: `maxSteps without a schedule`. */
  readonly got?: string;
  /** A noun phrase that continues "expected". */
  readonly expected: string;
  /** One imperative sentence. Default: `Correct the option.` */
  readonly fix?: string;
  readonly cause?: unknown;
}

/** Returns the error for a wrong option, whose message begins with `session options.budget.drainSeconds: got -1, expected …`. */
export function configError({
  where,
  path = [],
  value,
  got,
  fix,
  ...rest
}: ConfigErrorDetails): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: `${where}${pathText(path)}`,
    path,
    got: got ?? quoteValue(value),
    fix: fix ?? "Correct the option.",
    ...rest,
  });
}

/** Returns `.budget.seconds[2]` for `["budget", "seconds", 2]`. */
export function pathText(path: ValuePath): string {
  return path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("");
}

const errorOf =
  (code: ErrorCode) =>
  (where: string, got: string, expected: string, fix: string, cause?: unknown): PeriodicEvalError =>
    new PeriodicEvalError({ code, where, got, expected, fix, cause });

/** Returns the `data` error for a wrong row, file or folder at `where`. */
export const dataError = errorOf("data");

/** Returns the `model` error for a wrong model, engine or reply of a server at `where`. */
export const modelError = errorOf("model");

/** Returns the `judge` error for a judge that cannot be used. */
export const judgeError = errorOf("judge");

/** Returns the `store` error for a wrong file of a run or of results at `where`. */
export const fileError = errorOf("store");

/**
 * Describes the first id that an earlier entry of a list has too; null if there is none.
 *
 * @param path Where the list is within the checked options or file.
 */
export function repeatedId(list: readonly { readonly id: string }[], path: ValuePath = []) {
  const seen = new Set<string>();
  const at = list.findIndex(({ id }) => seen.size === seen.add(id).size);
  if (at < 0) return null;
  return {
    path: [...path, at, "id"],
    got: `"${list[at]!.id}" twice`,
    expected: "unique ids",
    fix: "Rename one of the two.",
  };
}
