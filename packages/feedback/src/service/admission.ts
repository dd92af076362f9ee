import { createHash, timingSafeEqual } from "node:crypto";
import { headerReadings, isLoopback, isOriginOf, isOwnHost } from "@periodic-eval/core/internal";
import type { MiddlewareHandler } from "hono";
import { refused } from "./refusals.ts";

export interface Admission {
  /** The host that the service listens on. */
  readonly host: string;
  /** Null: no token is required. */
  readonly token: string | null;
}

/**
 * Rejects requests from web pages of other sites. A page that uses DNS rebinding sends a foreign Host, other pages send a
 * foreign Origin, and no page can send JSON without a preflight. A service on an address that is not loopback requires a token, which
 * such pages lack. It accepts any Host, because it does not know the names of its machine.
 */
export function admission({ host, token }: Admission): MiddlewareHandler {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  const expected = token === null ? null : hash(`Bearer ${token}`);
  return async (context, next) => {
    const named = context.req.header("host") ?? "";
    if (isLoopback(host) && !isOwnHost(named, host))
      throw refused(403, "foreign_host", {
        where: "the Host header",
        got: JSON.stringify(named),
        expected: `this machine, as ${host}`,
        fix: "Use the address of the service.",
      });
    const origin = context.req.header("origin");
    if (origin !== undefined && !isOriginOf(origin, named))
      throw refused(403, "foreign_origin", {
        where: "the Origin header",
        got: JSON.stringify(origin),
        expected: "no Origin, or the service's",
        fix: "Send the request from a program instead of a web page.",
      });
    const given = context.req.header("authorization") ?? "";
    const isExpected = (reading: string) => expected === null || timingSafeEqual(hash(reading), expected);
    if (!headerReadings(given).some(isExpected))
      throw refused(401, "invalid_token", {
        where: "the Authorization header",
        got: given === "" ? "no token" : "a different token",
        expected: "the bearer token that the service was started with",
        fix: "Set OPENCLAW_GATEWAY_TOKEN to the same value on both sides.",
      });
    const type = context.req.header("content-type") ?? "";
    if (context.req.method === "POST" && !/^application\/json\s*(;|$)/i.test(type))
      throw refused(415, "unsupported_media_type", {
        where: "the Content-Type header",
        got: type === "" ? "no type" : JSON.stringify(type),
        expected: "application/json",
        fix: "Send JSON with this header.",
      });
    await next();
  };
}
