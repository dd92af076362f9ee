import type { Context } from "hono";
import { accepts } from "hono/accepts";
import type { PageWithPolicy } from "../html/document.ts";
import { messagePage } from "./pages.ts";

const commonHeaders = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Cross-Origin-Resource-Policy", "same-origin"],
  ["Cache-Control", "no-store"],
  ["Vary", "Accept"],
] as const;

/** The policy of replies that are not pages. */
export const strictPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'";

export function setHeaders(c: Context, policy: string): void {
  for (const [name, value] of commonHeaders) c.header(name, value);
  c.header("Content-Security-Policy", `${policy}; frame-ancestors 'none'`);
}

type Status = 200 | 400 | 401 | 403 | 404 | 405 | 500 | 503;

export function sendPage(c: Context, status: Status, { markup, policy }: PageWithPolicy) {
  setHeaders(c, policy);
  return sendText(c, pageType, markup, status);
}

const pageType = "text/html; charset=UTF-8";
const encoder = new TextEncoder();

/** Sends bytes: a string would stay in the heap until its client has read it. */
function sendText(c: Context, type: string, text: string, status: Status) {
  c.header("Content-Type", type);
  return c.body(encoder.encode(text), status);
}

export function sendData(c: Context, data: object, status: Status = 200) {
  setHeaders(c, strictPolicy);
  return sendText(c, "application/json", JSON.stringify(data), status);
}

/**
 * Sends a stream of server-sent events.
 *
 * @param open Returns null if there are too many clients.
 */
export function sendEvents(c: Context, open: () => ReadableStream<Uint8Array> | null) {
  setHeaders(c, strictPolicy);
  c.header("Content-Type", "text/event-stream; charset=UTF-8");
  if (c.req.method === "HEAD") return c.body(null, 200);
  const events = open();
  if (events !== null) return c.body(events, 200);
  c.header("Retry-After", "30");
  return sendMessage(
    c,
    503,
    "Too many clients",
    "Too many pages follow this folder. Reload the page to update it.",
  );
}

/** Sends a message as a page or, if the client prefers it, as JSON. */
export const sendMessage = (c: Context, status: Status, title: string, message: string) =>
  wantsJson(c) ? sendData(c, { error: message }, status) : sendPage(c, status, messagePage(title, message));

export const wantsJson = (c: Context): boolean =>
  accepts(c, { header: "Accept", supports: ["text/html", "application/json"], default: "text/html" }) ===
  "application/json";
