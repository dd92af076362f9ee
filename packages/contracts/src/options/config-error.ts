import { PeriodicEvalError, type ValuePath } from "../errors.ts";
import { quoteValue } from "./quote-value.ts";

export interface ConfigErrorDetails {
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
