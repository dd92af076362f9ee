import { PeriodicEvalError } from "../../errors.ts";

/**
 * Whether the time of a measurement is up: training goes on, and the rows measured so far are kept. An evaluation then
 * returns them; at any other abort it throws, for what it measured is measured again on resume.
 */
export function isDeadline(signal: AbortSignal): boolean {
  return signal.aborted && PeriodicEvalError.is(signal.reason, "deadline");
}
