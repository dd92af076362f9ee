import { pausedSeconds, runAtMost } from "#platform";

/**
 * Returns seconds since an arbitrary origin, without the pauses of this process. All durations come from this clock: a jump of
 * the system's clock does not change it.
 */
export const workingSeconds = (): number => performance.now() / 1000 - pausedSeconds();

/** Returns a delay for `setTimeout`, which takes at most 2³¹ − 1 milliseconds. */
const toMilliseconds = (seconds: number): number => Math.min(1000 * seconds, 2 ** 31 - 1);

/** Calls `onTimeUp` after a number of seconds, in which the process was not paused. Returns a function that prevents it. */
export function startTimeout(seconds: number, onTimeUp: () => void): () => void {
  const end = workingSeconds() + seconds;
  let paused = pausedSeconds();
  let timer: ReturnType<typeof setTimeout>;
  const check = () => {
    const before = paused;
    paused = pausedSeconds();
    const left = Math.min(paused - before, end - workingSeconds());
    if (left > 0) wait(left);
    else onTimeUp();
  };
  const wait = (left: number) => (timer = setTimeout(check, toMilliseconds(left)));
  wait(seconds);
  return () => clearTimeout(timer);
}

/** Whether a promise resolves within a number of seconds. Throws if it rejects by then. */
export async function resolvesWithin(promise: PromiseLike<unknown>, seconds: number): Promise<boolean> {
  let stop: () => void;
  const timeUp = new Promise<boolean>((resolve) => {
    // The timer keeps a process alive that waits for nothing else.
    stop = startTimeout(seconds, () => resolve(false));
  });
  try {
    return await Promise.race([Promise.resolve(promise).then(() => true), timeUp]);
  } finally {
    stop!();
  }
}

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
      const result = runAtMost(1000 * one, work);
      left = all;
      return result;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      left -= one;
      throw new Error(`${what} takes more than ${one} s for this text: simplify it`, { cause: error });
    }
  };
}

/** Settles like `promise`, but rejects with the signal's reason as soon as the signal aborts, or at once if it has aborted. */
export async function abortable<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort!);
  }
}
