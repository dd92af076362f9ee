import { hostname } from "node:os";
import { isOriginOf, isOwnHost } from "@periodic-eval/core/internal";
import type { Context, MiddlewareHandler } from "hono";
import { sendMessage } from "./replies.ts";

/** Refuses requests for other hosts (DNS rebinding), requests that would write, and requests from other sites. */
export const requestGuard =
  (host: string): MiddlewareHandler =>
  async (c, next) => {
    const called = [c.req.header("host"), new URL(c.req.url).host].filter((name) => name !== undefined);
    if (!called.every((name) => isOwnHost(name, host, hostname())))
      return sendMessage(
        c,
        403,
        "Wrong host",
        "This server answers only requests for its own host name or address.",
      );
    if (c.req.method !== "GET" && c.req.method !== "HEAD") {
      c.header("Allow", "GET, HEAD");
      return sendMessage(c, 405, "Read-only", "This server answers only GET and HEAD requests.");
    }
    if (isFromOtherSite(c))
      return sendMessage(
        c,
        403,
        "Request from another site",
        "This server does not answer requests from other sites.",
      );
    await next();
  };

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
