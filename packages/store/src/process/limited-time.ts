import { withinTime } from "#platform";

/** Seconds of work whose time a file decides. */
export interface TimeLimits {
  /** For one piece of work. */
  readonly one: number;
  /** For all pieces in a row that end at the limit of one. */
  readonly all: number;
}

const defaultLimits: TimeLimits = { one: 10, all: 60 };

/**
 * Returns a function that runs work whose time a file decides, such as a regular expression, which can take exponential time for a
 * short text. The work is synchronous. In browsers there is no limit.
 *
 * @param what Names the cause in errors: `the pattern`.
 */
export function limitedTime(what: string, { one, all } = defaultLimits): <T>(work: () => T) => T {
  let left = all;
  return (work) => {
    if (left < one)
      throw new Error(`not run, because ${what} took ${all} s for the texts before: simplify it`);
    try {
      const result = withinTime(1000 * one, work);
      left = all;
      return result;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      left -= one;
      throw new Error(`${what} takes more than ${one} s for this text: simplify it`, { cause: error });
    }
  };
}
