import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Context } from "hono";
import { accepts } from "hono/accepts";
import { stream } from "hono/streaming";
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

/** Milliseconds after which the beginning of a reply is sent, although the rest is not known yet. */
const waitMs = 150;

/** Returns what a promise resolves to within `waitMs`; null if it takes longer. */
async function early<T>(promise: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), waitMs)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * Sends a page. If it takes long, sends its beginning first, so that the browser shows that the server works on it.
 *
 * @param head The beginning of the page's markup, and its policy.
 */
export async function sendWhenReady(c: Context, head: PageWithPolicy, page: Promise<PageWithPolicy>) {
  const ready = await early(page);
  if (ready !== null) return sendPage(c, 200, ready);
  setHeaders(c, head.policy);
  c.header("Content-Type", pageType);
  const rest = page.then(
    ({ markup }) => markup.slice(head.markup.length),
    () => failedPage,
  );
  return sendParts(c, head.markup, rest);
}

/** Sends JSON. If it takes long, sends a line end first, which JSON may begin with. */
export async function sendDataWhenReady(c: Context, data: Promise<object>) {
  const ready = await early(data);
  if (ready !== null) return sendData(c, ready);
  setHeaders(c, strictPolicy);
  c.header("Content-Type", "application/json");
  const rest = data.then(
    (value) => JSON.stringify(value),
    () => JSON.stringify({ error: "The server could not create this reply." }),
  );
  return sendParts(c, "\n", rest);
}

const sendParts = (c: Context, first: string, rest: Promise<string>) =>
  stream(c, async (out) => {
    await out.write(first);
    await out.write(await rest);
  });

/** Seconds after which a reply that its client does not read no longer holds up other large pages. */
const unreadSeconds = 30;

/** Waits until the client has read the reply or has disconnected, at most `unreadSeconds`. */
export async function sent(c: Context): Promise<void> {
  const { outgoing } = (c.env ?? {}) as { readonly outgoing?: ServerResponse };
  if (outgoing === undefined || c.req.raw.signal.aborted || outgoing.writableFinished) return;
  const signal = AbortSignal.timeout(1000 * unreadSeconds);
  await once(outgoing, "close", { signal }).catch(() => undefined);
}

const failedPage = `<p class="notice damaged">The server could not create this page. Other pages may work.</p></main></body></html>`;

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
