import { PeriodicEvalError } from "../../errors.ts";

/** Ends one measurement when its time is up. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Reads the clock. Must be called wherever a measurement can end. */
  check(): void;
  /** Must be called when the measurement is over. */
  stop(): void;
}

/** @param at Returns when time is up, on the clock, each time it is called; null for never. */
export function deadlineAt(at: () => number | null, clock: () => number): Deadline {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    clearTimeout(timer);
    const end = at();
    if (end === null || controller.signal.aborted) return;
    const left = end - clock();
    // A timer also reaches an engine in the middle of a call, if the engine pauses there.
    if (left > 0) timer = setTimeout(check, Math.min(1000 * left, 2 ** 31 - 1));
    else controller.abort(timeIsUp());
  };
  check();
  return { signal: controller.signal, check, stop: () => clearTimeout(timer) };
}

const timeIsUp = () =>
  new PeriodicEvalError({
    code: "deadline",
    where: "measure",
    got: "a measurement whose time is up",
    expected: "measure to return the rows measured so far",
    fix: "Raise the session's budget to measure more.",
  });
