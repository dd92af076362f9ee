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

type Status = 200 | 400 | 403 | 404 | 405 | 500;

export function sendPage(c: Context, status: Status, { markup, policy }: PageWithPolicy) {
  setHeaders(c, policy);
  return c.html(markup, status);
}

export function sendData(c: Context, data: object, status: Status = 200) {
  setHeaders(c, strictPolicy);
  return c.json(data, status);
}

/** Sends a message as a page or, if the client prefers it, as JSON. */
export const sendMessage = (c: Context, status: Status, title: string, message: string) =>
  wantsJson(c) ? sendData(c, { error: message }, status) : sendPage(c, status, messagePage(title, message));

export const wantsJson = (c: Context): boolean =>
  accepts(c, { header: "Accept", supports: ["text/html", "application/json"], default: "text/html" }) ===
  "application/json";
