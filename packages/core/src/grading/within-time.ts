import { PeriodicEvalError } from "../errors.ts";

/**
 * Runs work under a signal of its own that goes off with the outer one or when time is up; then it rejects at once,
 * whether the work listens or not. Nothing stays attached to the outer signal.
 *
 * @throws the outer signal's reason; PeriodicEvalError `deadline`; whatever the work throws.
 */
export async function withinTime<T>(
  where: string,
  seconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  outer.throwIfAborted();
  const own = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort: (() => void) | undefined;
  const stopped = new Promise<never>((_, reject) => {
    const stop = (reason: unknown) => {
      reject(reason as Error);
      own.abort(reason);
    };
    onAbort = () => stop(outer.reason);
    outer.addEventListener("abort", onAbort, { once: true });
    // setTimeout holds no more than 2³¹ − 1 milliseconds.
    timer = setTimeout(() => stop(tooLong(where, seconds)), Math.min(1000 * seconds, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([work(own.signal), stopped]);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", onAbort!);
  }
}

const tooLong = (where: string, seconds: number) =>
  new PeriodicEvalError({
    code: "deadline",
    where,
    got: `no reply within ${seconds} s`,
    expected: "a reply",
    fix: "Raise timeoutSeconds, or lower concurrency.",
  });
