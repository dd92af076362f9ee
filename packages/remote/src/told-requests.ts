import type { CallOptions } from "@periodic-eval/core";
import { AsyncLocalStorage } from "node:async_hooks";
import { setMaxListeners } from "node:events";

const told = new AsyncLocalStorage<CallOptions["beforeRequest"]>();

/** A call under way. */
export interface ToldCall extends Omit<CallOptions, "beforeRequest"> {
  /** Runs what asks a server: its requests, now or behind any `await`, are told of. */
  send<T>(ask: () => Promise<T>): Promise<T>;
}

/**
 * Runs a call whose requests are told of: the client between gives its `fetch` no such word. What is thrown by whoever is told
 * ends the call, by the signal: a client would take it for a broken connection, and try again.
 */
export async function toldCall<T>(options: CallOptions, work: (call: ToldCall) => Promise<T>): Promise<T> {
  const { signal, beforeRequest, ...rest } = options;
  signal.throwIfAborted();
  const stop = new AbortController();
  // Each attempt under way listens more than once.
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
    return await work({ ...rest, signal: stop.signal, send: (ask) => told.run(before, ask) });
  } finally {
    // Where one failed the others are not worth waiting for.
    stop.abort();
    signal.removeEventListener("abort", onAbort);
  }
}

/** Statuses with which a server refuses before a token is made. A 400 is none: filters of content read the prompt. */
const refusals: ReadonlySet<number> = new Set([401, 403, 404, 429, 529]);
const unreached: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * Makes a request, told of before and when its reply is whole or it failed. It may be billed unless the server refused, or no
 * connection was had.
 *
 * @throws what whoever is told throws, before anything is sent; whatever `send` throws.
 */
export async function toldRequest<T>(send: (replied: (status: number) => void) => Promise<T>): Promise<T> {
  const ended = told.getStore()?.();
  let mayBeBilled = true;
  try {
    return await send((status) => (mayBeBilled = !refusals.has(status)));
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: unknown } };
    if (unreached.has(cause?.code)) mayBeBilled = false;
    throw error;
  } finally {
    ended?.(mayBeBilled);
  }
}
