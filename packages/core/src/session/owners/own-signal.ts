import { bindOwner } from "./left-behind.ts";

/** A signal for user code, and a function that separates it from the signal that it follows. */
interface OwnSignal {
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/**
 * Returns another signal that aborts with this one. Neither depends on what user code does to the other. Errors of its listeners
 * belong to the code on whose behalf this was called.
 */
export function ownSignal(signal: AbortSignal): OwnSignal {
  const own = new AbortController();
  const abort = bindOwner(() => {
    try {
      own.abort(signal.reason);
    } catch {
      // User code changed its signal, which then cannot dispatch.
    }
  });
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return { signal: own.signal, release: () => signal.removeEventListener("abort", abort) };
}

/** Runs user code with a signal of its own, which aborts with `signal` until the code settles. */
export async function withOwnSignal<T>(
  signal: AbortSignal,
  work: (own: AbortSignal) => T,
): Promise<Awaited<T>> {
  const own = ownSignal(signal);
  try {
    return await work(own.signal);
  } finally {
    own.release();
  }
}
