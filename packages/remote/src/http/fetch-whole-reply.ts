import { abortable } from "./abortable.ts";
import { trackRequest } from "./track-requests.ts";

/** If a server requires a longer wait, the client throws at once; a judge can then grade the answer later. */
const maximumWaitSeconds = 60;

/**
 * Returns a `fetch` for clients that retry. It differs from the global `fetch`:
 * - The time limit covers the body, not only the headers.
 * - A body that is cut off or is not JSON is a failed attempt.
 * - A reply with a `Retry-After` of more than a minute is not retried. A `Retry-After` that cannot be parsed is removed, so that
 *   the client uses its default back-off.
 * - A redirect is an error, so that no other server receives the key.
 * - `trackCall` reports each attempt.
 */
export function fetchWholeReply(timeoutSeconds: number): typeof fetch {
  return async (url, init) => {
    init?.signal?.throwIfAborted();
    return trackRequest(async (onStatus) => {
      const limit = new AbortController();
      const stop = () => limit.abort(init?.signal?.reason);
      init?.signal?.addEventListener("abort", stop, { once: true });
      const timer = setTimeout(
        () => limit.abort(new DOMException(`timed out after ${timeoutSeconds} s`, "TimeoutError")),
        1000 * timeoutSeconds,
      );
      try {
        const response = await fetch(url, { ...init, redirect: "error", signal: limit.signal });
        onStatus(response.status);
        // After the headers, Node's fetch (undici) holds the signal only by a weak reference. If the garbage collector took it,
        // a body that stalls would never end.
        const body = await abortable(limit.signal, response.text());
        if (response.ok) expectJson(body);
        return new Response(body === "" ? null : body, {
          status: response.status,
          statusText: response.statusText,
          headers: normalizeHeaders(response.headers),
        });
      } finally {
        clearTimeout(timer);
        init?.signal?.removeEventListener("abort", stop);
      }
    });
  };
}

function expectJson(body: string): void {
  try {
    JSON.parse(body);
  } catch {
    throw new TypeError("the reply is not complete JSON");
  }
}

function normalizeHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  // `text()` has already decoded the body.
  headers.delete("content-encoding");
  headers.delete("content-length");
  const waits = [
    ["retry-after-ms", 1000],
    ["retry-after", 1],
  ] as const;
  for (const [name, perSecond] of waits) {
    const value = headers.get(name);
    if (value === null) continue;
    // A date is compared with the server's clock.
    const seconds = /^\s*\d+(\.\d+)?\s*$/.test(value)
      ? Number(value) / perSecond
      : (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000;
    if (seconds > maximumWaitSeconds) headers.set("x-should-retry", "false");
    else if (seconds > 0) headers.set(name, String(seconds * perSecond));
    else headers.delete(name);
  }
  return headers;
}
