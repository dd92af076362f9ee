import { PeriodicEvalError } from "../../errors.ts";

/** Tells many of one signal's abort through one listener: Node warns of an eleventh. */
export interface AbortRelay {
  readonly signal: AbortSignal;
  readonly stops: Set<(reason: unknown) => void>;
  /** Leaves the signal as it was found. */
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
 * Runs work under a signal of its own that goes off with the outer one or when time is up; then it rejects at once,
 * whether the work listens or not.
 *
 * @throws the outer signal's reason; PeriodicEvalError `deadline`; whatever the work throws.
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
    // setTimeout holds no more than 2³¹ − 1 milliseconds.
    timer = setTimeout(() => stop(tooLong(where, seconds)), Math.min(1000 * seconds, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([work(own.signal), stopped]);
  } finally {
    clearTimeout(timer);
    stops.delete(stop!);
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
