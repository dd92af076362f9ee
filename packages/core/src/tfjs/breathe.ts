import { PeriodicEvalError } from "../errors.ts";

/**
 * Lets timers, sockets and abort signals have their turn, then throws if `signal` was aborted. On host backends
 * `tensor.data()` settles in a microtask, so without this a long call would never see an abort.
 *
 * @throws PeriodicEvalError `aborted`, the signal's reason as its cause.
 */
export async function breathe(signal: AbortSignal, where: string): Promise<void> {
  await macrotask();
  if (!signal.aborted) return;
  throw new PeriodicEvalError({
    code: "aborted",
    where,
    got: "an abort signal",
    expected: "to finish",
    fix: "Nothing to do if the abort was meant; what was computed in this call is lost.",
    cause: signal.reason,
  });
}

// setImmediate, where it exists, runs after pending input; a browser's setTimeout waits 4 ms when nested, which a
// batch or a token outlasts.
const macrotask = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(() => resolve());
    else setTimeout(resolve, 0);
  });
