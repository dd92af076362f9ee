import type { Context, MiddlewareHandler } from "hono";
import { refused } from "./refusals.ts";

/** Seconds after which a rejected request may be retried. */
const retrySeconds = 5;

export interface BodyLimits {
  /** Maximum size of a body. All bodies in memory together may have four times this size. */
  readonly maxBodyBytes: number;
  /** Time for a body to arrive. Default 30. */
  readonly bodySeconds?: number;
  /** Maximum number of bodies of one client (address) that are arriving. Default 32. */
  readonly bodiesPerClient?: number;
  /** Seconds after which an unfinished body may be dropped for a new one. Default 2. */
  readonly stalledSeconds?: number;
}

/** A body that has not arrived whole. */
interface Arriving {
  readonly client: string;
  readonly began: number;
  bytes: number;
  readonly drop: AbortController;
}

declare module "hono" {
  interface ContextVariableMap {
    /** The request's body; empty if it has none. */
    body: string;
  }
}

/**
 * Reads the bodies of requests into `context.var.body`, within limits:
 * - A larger body gets 413; one that does not arrive in time 408, which closes the connection.
 * - Bodies in memory, arriving or waiting for the model, may have four times `maxBodyBytes`. Beyond that, the oldest body that
 *   has stalled is dropped; if there is none, the new one gets 503.
 * - Of a client with too many unfinished bodies, the oldest is dropped: half-sent bodies do not keep whole ones out.
 */
export function waitingBodies({
  maxBodyBytes,
  bodySeconds = 30,
  bodiesPerClient = 32,
  stalledSeconds = 2,
}: BodyLimits): MiddlewareHandler {
  const limit = 4 * maxBodyBytes;
  const arriving = new Set<Arriving>();
  let waiting = 0;

  function drop(body: Arriving, error: Error): void {
    arriving.delete(body);
    waiting -= body.bytes;
    body.bytes = 0;
    body.drop.abort(error);
  }

  function reserve(context: Context, body: Arriving, bytes: number): void {
    if (body.bytes + bytes > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const isStalled = (one: Arriving) =>
      one !== body && performance.now() - one.began >= 1000 * stalledSeconds;
    while (waiting + bytes > limit) {
      const stalled = [...arriving].find((one) => one.bytes > 0 && isStalled(one));
      if (stalled === undefined) {
        context.header("retry-after", String(retrySeconds));
        throw tooMany(body.bytes + bytes, waiting, limit);
      }
      drop(stalled, tooSlow(stalledSeconds));
    }
    waiting += bytes;
    body.bytes += bytes;
  }

  async function read(context: Context, body: Arriving): Promise<string> {
    const reader = context.req.raw.body!.getReader();
    const { signal } = body.drop;
    // A pending read then ends as if the body were complete.
    signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined), { once: true });
    const timer = setTimeout(() => drop(body, tooSlow(bodySeconds)), 1000 * bodySeconds);
    let bytes = new Uint8Array(1024);
    try {
      for (;;) {
        const { done, value } = await reader.read().catch(() => {
          throw incomplete();
        });
        signal.throwIfAborted();
        if (done) return textOf(bytes.subarray(0, body.bytes));
        reserve(context, body, value.length);
        bytes = filled(bytes, body.bytes - value.length, value);
      }
    } finally {
      clearTimeout(timer);
      arriving.delete(body);
    }
  }

  return async (context, next) => {
    context.set("body", "");
    if (context.req.raw.body === null) return next();
    if (Number(context.req.header("content-length")) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const body: Arriving = {
      client: addressOf(context),
      began: performance.now(),
      bytes: 0,
      drop: new AbortController(),
    };
    const own = [...arriving].filter(({ client }) => client === body.client);
    if (own.length >= bodiesPerClient) drop(own[0]!, tooSlow((performance.now() - own[0]!.began) / 1000));
    arriving.add(body);
    try {
      context.set("body", await read(context, body));
      await next();
    } catch (error) {
      if (body.drop.signal.aborted) context.header("connection", "close");
      throw error;
    } finally {
      waiting -= body.bytes;
    }
  };
}

/** Returns a buffer with a chunk at a position. A body of tiny chunks in a list would take a hundred times its size. */
function filled(bytes: Uint8Array<ArrayBuffer>, at: number, chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const end = at + chunk.length;
  const enough = end > bytes.length ? Buffer.concat([bytes], 2 * end) : bytes;
  enough.set(chunk, at);
  return enough;
}

/** A replaced character would train the model on another text. */
function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused(400, "invalid_json", {
      where: "the body",
      got: "bytes that are not UTF-8",
      expected: "JSON in UTF-8",
      fix: "Send the request in UTF-8.",
    });
  }
}

const addressOf = ({ env }: Context): string => {
  const { incoming } = (env ?? {}) as {
    readonly incoming?: { readonly socket?: { remoteAddress?: string } };
  };
  return incoming?.socket?.remoteAddress ?? "";
};

const tooLarge = (maxBodyBytes: number) =>
  refused(413, "body_too_large", {
    where: "the body",
    got: `more than ${maxBodyBytes} bytes`,
    expected: `at most ${maxBodyBytes} bytes`,
    fix: "Send smaller requests.",
  });

const tooMany = (size: number, waiting: number, limit: number) =>
  refused(503, "too_many_waiting", {
    where: "the service",
    got: `a request of ${size} bytes and ${waiting} bytes of waiting requests`,
    expected: `at most ${limit} bytes in total`,
    fix: `Retry in ${retrySeconds} seconds.`,
  });

/** The client is gone and cannot read this reply. Status 500 would be reported as a failure of the service. */
const incomplete = () =>
  refused(400, "incomplete_body", {
    where: "the body",
    got: "a connection that ended",
    expected: "a whole body",
    fix: "Send the request again.",
  });

const tooSlow = (seconds: number) =>
  refused(408, "body_too_slow", {
    where: "the body",
    got: `an unfinished body after ${Math.round(10 * seconds) / 10} s`,
    expected: "a body that arrives without delay",
    fix: "Check the connection, and send the request again.",
  });
