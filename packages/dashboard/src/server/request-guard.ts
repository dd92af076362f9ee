import { createHash, timingSafeEqual } from "node:crypto";
import { hostname } from "node:os";
import { headerReadings, isOriginOf, isOwnHost } from "@periodic-eval/data";
import type { Context, MiddlewareHandler } from "hono";
import { sendMessage } from "./replies.ts";

/** The only address to which clients may write. */
export const answersPath = "/v1/eval/answers";

/**
 * Refuses requests for other hosts (DNS rebinding), requests that would write anything but labels, requests from other sites, and requests without
 * the token. A program sends the token as a bearer token; a browser asks for it as a password, with any user name.
 *
 * @param token Null: no token is required.
 */
export function requestGuard(host: string, token: string | null): MiddlewareHandler {
  const isAllowed = token === null ? () => true : tokenCheck(token);
  return async (c, next) => {
    const called = [c.req.header("host"), new URL(c.req.url).host].filter((name) => name !== undefined);
    if (!called.every((name) => isOwnHost(name, host, hostname())))
      return sendMessage(
        c,
        403,
        "Wrong host",
        "This server answers only requests for its own host name or address.",
      );
    const takesLabels = c.req.path === answersPath;
    const methods = ["GET", "HEAD", ...(takesLabels ? ["POST"] : [])];
    if (!methods.includes(c.req.method)) {
      c.header("Allow", methods.join(", "));
      return takesLabels
        ? sendMessage(c, 405, "Wrong method", "This address answers only GET, HEAD and POST requests.")
        : sendMessage(c, 405, "Read-only", "This server answers only GET and HEAD requests.");
    }
    if (isFromOtherSite(c))
      return sendMessage(
        c,
        403,
        "Request from another site",
        "This server does not answer requests from other sites.",
      );
    if (!isAllowed(c.req.header("authorization") ?? "")) {
      c.header("WWW-Authenticate", 'Basic realm="periodic-eval", charset="UTF-8"');
      return sendMessage(c, 401, "Wrong token", "This server needs the token that it was started with.");
    }
    await next();
  };
}

const hash = (text: string) => createHash("sha256").update(text).digest();

/** Compares hashes in constant time, so that the time of a reply reveals nothing about the secret. */
export const isSameSecret = (text: string, secret: string): boolean =>
  timingSafeEqual(hash(text), hash(secret));

function tokenCheck(token: string): (header: string) => boolean {
  return (header) => {
    const [, scheme = "", credentials = ""] = /^(\w+) +(.*)$/.exec(header) ?? [];
    const isBasic = scheme.toLowerCase() === "basic";
    if (!isBasic && scheme.toLowerCase() !== "bearer") return false;
    const secrets = isBasic ? [passwordOf(credentials)] : headerReadings(credentials);
    return secrets.some((secret) => isSameSecret(secret, token));
  };
}

/** Returns the password of Basic credentials, which may contain colons. */
const passwordOf = (credentials: string): string =>
  Buffer.from(credentials, "base64")
    .toString()
    .replace(/^[^:]*:/, "");

/**
 * Whether a page of another site makes the request, for example for an image or a frame. That page cannot read the reply, but
 * producing it costs time. Top-level navigation is allowed.
 */
function isFromOtherSite(c: Context): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined && !isOriginOf(origin, c.req.header("host"))) return true;
  const isNavigation =
    c.req.header("sec-fetch-mode") === "navigate" && c.req.header("sec-fetch-dest") === "document";
  return c.req.header("sec-fetch-site") === "cross-site" && !isNavigation;
}
