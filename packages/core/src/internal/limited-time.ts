import { withinTime } from "#platform";

/** Seconds for one piece of work, and for all pieces together that end at that limit. */
const limits = { one: 10, all: 60 };

/**
 * Returns a function that runs work whose time a file decides, such as a regular expression, which can take exponential time for a
 * short text. The work is synchronous. In browsers there is no limit.
 *
 * @param what Names the cause in errors: `the pattern`.
 */
export function limitedTime(what: string, { one, all } = limits): <T>(work: () => T) => T {
  let left = all;
  return (work) => {
    if (left < one)
      throw new Error(`not checked, because ${what} took ${all} s for earlier texts: simplify it`);
    try {
      return withinTime(1000 * one, work);
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      left -= one;
      throw new Error(`${what} takes more than ${one} s for this text: simplify it`, { cause: error });
    }
  };
}
