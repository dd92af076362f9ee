import { createHash, timingSafeEqual } from "node:crypto";
import { isLoopback, isOriginOf, isOwnHost } from "@periodic-eval/core/internal";
import type { MiddlewareHandler } from "hono";
import { refused } from "./refusals.ts";

export interface Admission {
  /** What the service is bound to. */
  readonly host: string;
  /** Null: none is asked for. */
  readonly token: string | null;
}

/**
 * Who may ask. Pages of other sites may not: one whose name was turned to this machine's address (DNS rebinding) comes with
 * a foreign Host, any other with a foreign Origin, and JSON it cannot send unasked. Where the service is bound beyond the
 * loopback there is a token, which no such page has, and any Host will do: names of machines are not known here.
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
        fix: "Ask the service by its own address.",
      });
    const origin = context.req.header("origin");
    if (origin !== undefined && !isOriginOf(origin, named))
      throw refused(403, "foreign_origin", {
        where: "the Origin header",
        got: JSON.stringify(origin),
        expected: "no page of another site",
        fix: "Ask from a program.",
      });
    const given = context.req.header("authorization") ?? "";
    if (expected !== null && !timingSafeEqual(hash(given), expected))
      throw refused(401, "invalid_token", {
        where: "the Authorization header",
        got: given === "" ? "none" : "another token",
        expected: "the bearer token that the service was started with",
        fix: "Set OPENCLAW_GATEWAY_TOKEN to the same on both sides.",
      });
    const type = context.req.header("content-type") ?? "";
    if (context.req.method === "POST" && !/^application\/json\s*(;|$)/i.test(type))
      throw refused(415, "unsupported_media_type", {
        where: "the Content-Type header",
        got: type === "" ? "none" : JSON.stringify(type),
        expected: "application/json",
        fix: "Send JSON, and say so.",
      });
    await next();
  };
}
