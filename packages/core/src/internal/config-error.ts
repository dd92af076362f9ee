import { PeriodicEvalError, type ValuePath } from "../errors.ts";
import { quoteValue } from "./quote-value.ts";

export interface ConfigErrorDetails {
  /** Which options: `session options`, `SFTTrainer config`. */
  readonly where: string;
  /** The wrong option, within `where`. Default: the options as a whole. */
  readonly path?: ValuePath;
  /** The wrong value, which the message quotes; or `got`, the same in words. */
  readonly value?: unknown;
  readonly got?: string;
  readonly expected: string;
  /** One imperative sentence. Default: `Correct the option.` */
  readonly fix?: string;
  readonly cause?: unknown;
}

/** Returns the error for a wrong option: `session options.budget.drainSeconds: got -1, expected …`. */
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
