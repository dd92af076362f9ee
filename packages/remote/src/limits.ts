import { PeriodicEvalError } from "@periodic-eval/core";
import { isCount, quoteValue } from "@periodic-eval/core/internal";

export interface Limits {
  /** For one attempt. */
  readonly timeoutSeconds?: number;
  /** Attempts after the first. */
  readonly maxRetries?: number;
}

/** @throws PeriodicEvalError `config` for a limit that cannot be kept; `usual` is what it is where it is left out. */
export function checkLimits(
  where: string,
  { timeoutSeconds, maxRetries }: Limits,
  usual: Required<Limits>,
): void {
  const check = (option: keyof Limits, got: unknown, isRight: boolean, expected: string) => {
    if (got === undefined || isRight) return;
    throw new PeriodicEvalError({
      code: "config",
      where: `${where}.${option}`,
      got: quoteValue(got),
      expected,
      fix: `Leave it out for ${usual[option]}.`,
    });
  };
  const isTime = typeof timeoutSeconds === "number" && timeoutSeconds > 0 && timeoutSeconds <= 86_400;
  check("timeoutSeconds", timeoutSeconds, isTime, "a number over 0, at most a day");
  check("maxRetries", maxRetries, isCount(maxRetries), "a whole number of 0 or more");
}
