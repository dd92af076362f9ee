import { PeriodicEvalError } from "../../errors.ts";

/** Forwards one signal's abort to many calls through one listener: Node warns about a leak from the eleventh listener on. */
export interface AbortRelay {
  readonly signal: AbortSignal;
  readonly stops: Set<(reason: unknown) => void>;
  /** Removes the listener. */
  close(): void;
}

export function abortRelay(signal: AbortSignal): AbortRelay {
  const stops = new Set<(reason: unknown) => void>();
  const onAbort = () => {
    for (const stop of stops) stop(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return { signal, stops, close: () => signal.removeEventListener("abort", onAbort) };
}

/**
 * Runs work with its own signal, which aborts with the outer signal or at the timeout. It then rejects immediately, even if the
 * work ignores its signal.
 *
 * @throws The outer signal's reason; PeriodicEvalError `deadline` at the timeout; the errors of `work`.
 */
export async function withinTime<T>(
  where: string,
  seconds: number,
  { signal, stops }: AbortRelay,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop: (reason: unknown) => void;
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      reject(reason);
      own.abort(reason);
    };
    stops.add(stop);
    // setTimeout accepts at most 2³¹ − 1 milliseconds.
    timer = setTimeout(() => stop(timeoutError(where, seconds)), Math.min(1000 * seconds, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([work(own.signal), stopped]);
  } finally {
    clearTimeout(timer);
    stops.delete(stop!);
  }
}

const timeoutError = (where: string, seconds: number) =>
  new PeriodicEvalError({
    code: "deadline",
    where,
    got: `no reply within ${seconds} s`,
    expected: "a reply",
    fix: "Raise timeoutSeconds, or lower concurrency.",
  });
