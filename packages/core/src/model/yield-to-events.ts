import { PeriodicEvalError } from "../errors.ts";

const listeners = new WeakMap<AbortSignal, () => void>();

/** Calls `listener` whenever work with this signal yields to events: the engine is making progress. */
export const onYield = (signal: AbortSignal, listener: () => void): void =>
  void listeners.set(signal, listener);

/**
 * Lets timers, sockets and abort signals run, then throws if `signal` was aborted. On host backends `tensor.data()` settles in a
 * microtask, so a long call would otherwise never notice an abort.
 *
 * @throws PeriodicEvalError `aborted`, with the signal's reason as its cause.
 */
export async function yieldToEvents(signal: AbortSignal, where: string): Promise<void> {
  listeners.get(signal)?.();
  await macrotask();
  if (!signal.aborted) return;
  throw new PeriodicEvalError({
    code: "aborted",
    where,
    got: "an abort signal",
    expected: "to finish",
    fix: "Repeat the call if the abort was not intended: its results are lost.",
    cause: signal.reason,
  });
}

// setImmediate runs after pending input. Browsers have only setTimeout, which waits 4 ms when nested, less than a batch or a
// token takes.
const macrotask = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(() => resolve());
    else setTimeout(resolve, 0);
  });
