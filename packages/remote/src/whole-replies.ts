import { orAborted } from "./or-aborted.ts";
import { toldRequest } from "./told-requests.ts";

/** A server that asks for a longer wait is not waited for: the error says so, and the answer can be graded later. */
const longestWaitSeconds = 60;

/**
 * `fetch` for a client that retries. What the clients leave open is closed here: the time limit covers the body, not
 * only its headers; a body that was cut off or is no JSON is a failed attempt; a wait beyond a minute is not retried, and
 * one that cannot be understood is left to the client's own back-off; no redirect takes the key along. Each attempt is told
 * of (`toldCall`).
 */
export function wholeReplies(timeoutSeconds: number): typeof fetch {
  return async (url, init) => {
    init?.signal?.throwIfAborted();
    return toldRequest(async (replied) => {
      const limit = new AbortController();
      const stop = () => limit.abort(init?.signal?.reason);
      init?.signal?.addEventListener("abort", stop, { once: true });
      const timer = setTimeout(
        () => limit.abort(new DOMException(`timed out after ${timeoutSeconds} s`, "TimeoutError")),
        1000 * timeoutSeconds,
      );
      try {
        const response = await fetch(url, { ...init, redirect: "error", signal: limit.signal });
        replied(response.status);
        // Node's fetch may lose its hold on the signal to the garbage collector once the headers are there (undici keeps it
        // by a weak reference): a body that stalls would then be waited for without end.
        const body = await orAborted(limit.signal, response.text());
        if (response.ok) expectJson(body);
        return new Response(body === "" ? null : body, {
          status: response.status,
          statusText: response.statusText,
          headers: understoodHeaders(response.headers),
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
    throw new TypeError("the reply is no whole JSON");
  }
}

function understoodHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  // The body is decoded by now.
  headers.delete("content-encoding");
  headers.delete("content-length");
  const waits = [
    ["retry-after-ms", 1000],
    ["retry-after", 1],
  ] as const;
  for (const [name, perSecond] of waits) {
    const value = headers.get(name);
    if (value === null) continue;
    // A date is measured by the server's own clock.
    const seconds = /^\s*\d+(\.\d+)?\s*$/.test(value)
      ? Number(value) / perSecond
      : (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000;
    if (seconds > longestWaitSeconds) headers.set("x-should-retry", "false");
    else if (seconds > 0) headers.set(name, String(seconds * perSecond));
    else headers.delete(name);
  }
  return headers;
}
