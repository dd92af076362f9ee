import type { MiddlewareHandler } from "hono";
import { refused } from "./refusals.ts";

/** Seconds after which a rejected request may be retried. */
const retrySeconds = 5;

/**
 * Limits the total size of waiting bodies, which are all in memory, to four times `maxBodyBytes`; further requests get 503. A
 * body of unknown size counts as `maxBodyBytes`.
 */
export function waitingBodies(maxBodyBytes: number): MiddlewareHandler {
  const limit = 4 * maxBodyBytes;
  let waiting = 0;
  return async (context, next) => {
    const { "content-length": length, "transfer-encoding": coding } = context.req.header();
    const size =
      length === undefined
        ? coding === undefined
          ? 0
          : maxBodyBytes
        : Math.min(Number(length), maxBodyBytes);
    if (size > 0 && waiting + size > limit) {
      context.header("retry-after", String(retrySeconds));
      throw refused(503, "too_many_waiting", {
        where: "the service",
        got: `a request of ${size} bytes and ${waiting} bytes of waiting requests`,
        expected: `at most ${limit} bytes in total`,
        fix: `Retry in ${retrySeconds} seconds.`,
      });
    }
    waiting += size;
    try {
      await next();
    } finally {
      waiting -= size;
    }
  };
}
