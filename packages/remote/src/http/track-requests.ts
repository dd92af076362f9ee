import type { CallOptions } from "@periodic-eval/core";
import { AsyncLocalStorage } from "node:async_hooks";
import { setMaxListeners } from "node:events";

const observer = new AsyncLocalStorage<CallOptions["beforeRequest"]>();

/** A call in progress whose requests are reported to `beforeRequest`. */
export interface TrackedCall extends Omit<CallOptions, "beforeRequest"> {
  /** Runs `work` and reports every request that it sends, even after an `await`. */
  send<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Runs a call and reports its requests to `options.beforeRequest`. An AsyncLocalStorage holds the callback, because the
 * providers' clients pass no context to `fetch`. If the callback throws, the signal aborts the call; otherwise a client would
 * treat the error as a broken connection and retry.
 */
export async function trackCall<T>(
  options: CallOptions,
  work: (call: TrackedCall) => Promise<T>,
): Promise<T> {
  const { signal, beforeRequest, ...rest } = options;
  signal.throwIfAborted();
  const stop = new AbortController();
  // Each attempt in progress adds several listeners.
  setMaxListeners(0, stop.signal);
  const onAbort = () => stop.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const before =
    beforeRequest &&
    (() => {
      try {
        return beforeRequest();
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    });
  try {
    return await work({ ...rest, signal: stop.signal, send: (ask) => observer.run(before, ask) });
  } finally {
    // After a failed request, the call does not need the other replies.
    stop.abort();
    signal.removeEventListener("abort", onAbort);
  }
}

/** Statuses that a server sends before it generates a token. Without 400: a content filter may bill the prompt that it reads. */
const unbilledStatuses: ReadonlySet<number> = new Set([401, 403, 404, 429, 529]);
const unreachedCodes: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * Sends one request. Reports its start, and its end: a complete reply or a failure. The request may be billed unless the server
 * rejected it or was not reached.
 *
 * @param send Sends the request. It calls `onStatus` with the status of the reply.
 * @throws the error of `beforeRequest`, before anything is sent; any error of `send`.
 */
export async function trackRequest<T>(send: (onStatus: (status: number) => void) => Promise<T>): Promise<T> {
  const reportEnd = observer.getStore()?.();
  let mayBeBilled = true;
  try {
    return await send((status) => (mayBeBilled = !unbilledStatuses.has(status)));
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: unknown } };
    if (unreachedCodes.has(cause?.code)) mayBeBilled = false;
    throw error;
  } finally {
    reportEnd?.(mayBeBilled);
  }
}

/** Runs `work` without reporting its requests: they are not part of the call during which they are sent. */
export const untracked = <T>(work: () => Promise<T>): Promise<T> => observer.run(undefined, work);
