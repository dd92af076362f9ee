import type { CallOptions } from "@periodic-eval/core";
import { AsyncLocalStorage } from "node:async_hooks";

const told = new AsyncLocalStorage<CallOptions["beforeRequest"]>();

/** Runs a call whose requests, now or behind any `await`, are told of: the client between gives its `fetch` no such word. */
export const tellingRequests = <T>(beforeRequest: CallOptions["beforeRequest"], work: () => Promise<T>) =>
  told.run(beforeRequest, work);

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
