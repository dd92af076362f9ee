// A server whose replies are random faults, and another server, which must not receive the API key.
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect } from "vitest";

export const key = "hf_secret0123456789KEY";
const json = { "content-type": "application/json" };
const bomb = gzipSync(Buffer.alloc(2 ** 26, " "));
/** Bytes that a client may take of a reply without an end. */
const mostBytes = 2 ** 26;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The right reply. */
  readonly good: Buffer;
  readonly elsewhere: string;
}
type Act = (exchange: Exchange) => unknown;

const statuses = [204, 304, 400, 401, 404, 408, 413, 429, 500, 503];
const bodies = ["", "null", "[]", "{}", "0", "<html>", '{"choices": [', '{"error": null}', '{"content": 7}'];
const waits = [{ "retry-after": "9999999" }, { "retry-after": "soon" }, { "retry-after-ms": "1" }];
const named = <Value extends string | number>(
  list: readonly Value[],
  act: (value: Value, at: number) => Act,
) => Object.fromEntries(list.map((value, at) => [`replies with ${value}`, act(value, at)]));

const acts: Readonly<Record<string, Act>> = {
  ...named(statuses, (status, at) => ({ request: { headers }, response }) => {
    const message = headers.authorization ?? headers["x-api-key"];
    response.writeHead(status, { ...json, ...waits[at % 3] }).end(JSON.stringify({ error: { message } }));
  }),
  ...named(bodies, (body) => (exchange) => exchange.response.writeHead(200, json).end(body)),
  stall: () => undefined,
  "stall in the body": ({ response, good }) => response.writeHead(200, json).write(good.subarray(0, 5)),
  endless({ response }) {
    response.writeHead(200, json);
    let sent = 0;
    const more = () => {
      if (!response.destroyed) response.write(" ".repeat(2 ** 16), () => setImmediate(more));
      expect((sent += 2 ** 16), "bytes of an endless reply").toBeLessThan(mostBytes);
    };
    more();
  },
  "gzip bomb": ({ response }) => response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(bomb),
  "no gzip": ({ response, good }) =>
    response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(good),
  redirect: ({ response, elsewhere }) => response.writeHead(307, { location: elsewhere }).end(),
  cut({ response, good }) {
    response.writeHead(200, { ...json, "content-length": good.length });
    response.write(good.subarray(0, good.length / 2), () => response.destroy());
  },
  "other bytes": ({ response, good }) => response.writeHead(200, json).end(`x${good.subarray(1).toString()}`),
  reset: ({ response }) => response.socket!.resetAndDestroy(),
  "no HTTP": ({ response }) => response.socket!.end("SSH-2.0\r\n"),
};
const names = Object.keys(acts);
/** Draws for each request how the server acts: `good`, or one of a few faults. */
export function drawActs(excluded?: RegExp): fc.Arbitrary<fc.Stream<string>> {
  const [replies, others] = [true, false].map((isReply) =>
    fc.constantFrom(
      ...names.filter((name) => !excluded?.test(name) && name.startsWith("replies") === isReply),
    ),
  );
  const fault = fc.oneof(replies!, { arbitrary: others!, weight: 3 });
  return fc
    .tuple(fc.array(fault, { minLength: 1, maxLength: 4 }), fc.nat({ max: 3 }))
    .chain(([some, weight]) =>
      fc.infiniteStream(
        fc.oneof(
          { arbitrary: fc.constant("good"), weight },
          { arbitrary: fc.constantFrom(...some), weight: 2 },
        ),
      ),
    );
}

async function listen(answer: RequestListener) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => (server.closeAllConnections(), server.close()) };
}

/** Starts a server that acts as drawn after some good replies. `reply` returns the right reply, as an object or bytes. */
export async function badServer(
  drawn: Iterator<string>,
  reply: (url: string, body: string) => unknown,
  goodAtFirst = 0,
) {
  const log: string[] = [];
  const strange: string[] = [];
  const stranger = await listen((request, response) => {
    strange.push(JSON.stringify(request.headers));
    response.writeHead(200, json).end("{}");
  });
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    response.on("error", () => undefined);
    request.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const act = log.length < goodAtFirst ? "good" : (drawn.next().value as string);
      log.push(act);
      const right = reply(request.url!, Buffer.concat(chunks).toString());
      const good = Buffer.isBuffer(right) ? right : Buffer.from(JSON.stringify(right));
      // The hub's client asks for both.
      response.setHeader("etag", '"x"').setHeader("content-range", `bytes 0-0/${good.length}`);
      if (act === "good") return response.writeHead(200, json).end(good);
      return acts[act]!({ request, response, good, elsewhere: stranger.url });
    });
  });
  return {
    url: server.url,
    log,
    /** The requests of the other server. */
    strange,
    /** Asserts that neither a value nor the other server has the key. */
    expectNoKey(value: unknown) {
      expect(inspect(value, { depth: 9 }), log.join()).not.toContain(key);
      expect(strange.join(), log.join()).not.toContain(key);
    },
    close: () => (server.close(), stranger.close()),
  };
}
