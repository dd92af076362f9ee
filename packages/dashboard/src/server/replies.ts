import type { Context, MiddlewareHandler } from "hono";
import { accepts } from "hono/accepts";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { PageWithPolicy } from "../html/document.ts";
import { messagePage } from "./pages.ts";

const safeHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
  Vary: "Accept",
};

/** Sets the headers of every reply. Hono's own middleware sets them after a reply is made, which turns its bytes into a stream. */
export const setSafeHeaders: MiddlewareHandler = async (c, next) => {
  for (const [name, value] of Object.entries(safeHeaders)) c.header(name, value);
  setPolicy(c, "default-src 'none'; base-uri 'none'; form-action 'none'");
  await next();
};

const setPolicy = (c: Context, policy: string): void =>
  c.header("Content-Security-Policy", `${policy}; frame-ancestors 'none'`);

export function sendPage(
  c: Context,
  { markup, policy }: PageWithPolicy,
  status: ContentfulStatusCode = 200,
): Response {
  setPolicy(c, policy);
  return sendText(c, "text/html; charset=UTF-8", markup, status);
}

const encoder = new TextEncoder();

/** Sends bytes: a string would stay in the heap until its client has read it. */
function sendText(c: Context, type: string, text: string, status: ContentfulStatusCode): Response {
  c.header("Content-Type", type);
  return c.body(encoder.encode(text), status);
}

export const sendData = (c: Context, data: object, status: ContentfulStatusCode = 200): Response =>
  sendText(c, "application/json", JSON.stringify(data), status);

/** Sends a message as a page or, if the client prefers it, as JSON. */
export const sendMessage = (
  c: Context,
  status: ContentfulStatusCode,
  title: string,
  message: string,
): Response =>
  wantsJson(c) ? sendData(c, { error: message }, status) : sendPage(c, messagePage(title, message), status);

export const wantsJson = (c: Context): boolean =>
  accepts(c, { header: "Accept", supports: ["text/html", "application/json"], default: "text/html" }) ===
  "application/json";
