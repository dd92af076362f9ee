import type { MiddlewareHandler } from "hono";
import { refused } from "./refusals.ts";

/** After which a refused request may be tried again, in seconds. */
const pause = 5;

/**
 * Bounds the bytes of the bodies that wait for their turn, for all are in memory meanwhile: beyond four of the largest size
 * requests are refused for now. A body whose size is not told counts as one of the largest.
 */
export function waitingBodies(maxBodyBytes: number): MiddlewareHandler {
  const most = 4 * maxBodyBytes;
  let waiting = 0;
  return async (context, next) => {
    const { "content-length": told, "transfer-encoding": coding } = context.req.header();
    const size =
      told === undefined ? (coding === undefined ? 0 : maxBodyBytes) : Math.min(Number(told), maxBodyBytes);
    if (size > 0 && waiting + size > most) {
      context.header("retry-after", String(pause));
      throw refused(503, "too_many_waiting", {
        where: "the service",
        got: `a request of ${size} bytes behind ${waiting} bytes of requests that wait`,
        expected: `no more than ${most} bytes in all`,
        fix: `Ask again in ${pause} seconds.`,
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
