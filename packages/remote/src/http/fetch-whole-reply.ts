import { fetchBounded, maxReplyBytes, ReplyTooLargeError } from "@periodic-eval/data";
import { trackRequest } from "./track-requests.ts";

/** If a server requires a longer wait, the client throws at once; a judge can then grade the answer later. */
const maximumWaitSeconds = 60;

/**
 * Returns a `fetch` for clients that retry. It differs from the global `fetch`:
 * - The time limit covers the body, not only the headers.
 * - A body that is cut off is a failed attempt, and so is one that is not JSON unless `isJson` is false.
 * - A body of more than `maxBytes` (decompressed; default 8 MiB) is cancelled. The client receives a 502 that it does not retry.
 * - A reply with a `Retry-After` of more than a minute is not retried. A `Retry-After` that cannot be parsed is removed, so that
 *   the client uses its default back-off.
 * - A 429 without `Retry-After` gets one from `RateLimit-Reset` or a similar header, if that is 1 to 60 seconds. These headers are
 *   removed, because some clients wait for any time in them.
 * - A redirect is an error, so that no other server receives the key. With `redirect: "manual"`, it is the reply.
 * - `trackCall` reports each attempt.
 */
export function fetchWholeReply(
  timeoutSeconds: number,
  maxBytes = maxReplyBytes,
  {
    redirect = "error",
    isJson = true,
  }: { readonly redirect?: RequestRedirect; readonly isJson?: boolean } = {},
): typeof fetch {
  return async (url, init) => {
    // Outside of `trackRequest`, which would report a request.
    init?.signal?.throwIfAborted();
    return trackRequest(async (onStatus) => {
      try {
        const limits = { timeoutSeconds, maxBytes, onStatus };
        const reply = await fetchBounded(url, { ...init, redirect }, limits);
        const { ok, status, statusText, headers } = reply.response;
        const body = reply.text();
        const isParsed = ok && isJson;
        if (isParsed) expectJson(body);
        const sent = normalizeHeaders(headers, status);
        // Clients parse a body of another type as text.
        if (isParsed) sent.set("content-type", "application/json");
        return new Response(body === "" ? null : body, {
          status,
          statusText,
          headers: sent,
        });
      } catch (error) {
        if (error instanceof ReplyTooLargeError) return tooLarge(error);
        throw error;
      }
    });
  };
}

/** Clients retry every error of `fetch`, but not a reply that forbids it. */
const tooLarge = ({ message }: ReplyTooLargeError): Response =>
  Response.json(
    { error: { message: `the server sent ${message}` } },
    { status: 502, headers: { "x-should-retry": "false" } },
  );

function expectJson(body: string): void {
  try {
    JSON.parse(body);
  } catch {
    throw new TypeError("a reply that is not complete JSON");
  }
}

const rateLimitEnds = [
  "ratelimit-reset",
  "x-ratelimit-retry-after",
  "x-ratelimit-reset",
  "x-rate-limit-reset",
];

function normalizeHeaders(received: Headers, status: number): Headers {
  const headers = new Headers(received);
  // The body is already decompressed.
  headers.delete("content-encoding");
  headers.delete("content-length");
  // Without `Retry-After`, ky would wait until a rate limit ends, which can be a day. Some servers send it with every status.
  for (const name of rateLimitEnds) {
    const seconds = Number(headers.get(name));
    const isWait = status === 429 && seconds >= 1 && seconds <= maximumWaitSeconds;
    if (isWait && !headers.has("retry-after")) headers.set("retry-after", String(seconds));
    headers.delete(name);
  }
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
