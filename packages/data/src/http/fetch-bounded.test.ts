import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { fetchBounded, ReplyTooLargeError } from "./fetch-bounded.ts";

/** Starts a server. `closed` resolves when the connection of a reply is closed before the reply was complete. */
async function serve(act: (response: ServerResponse) => void) {
  let isClosed = () => {};
  const closed = new Promise<void>((resolve) => (isClosed = resolve));
  const server = createServer((request, response) => {
    request.resume();
    response.on("close", () => !response.writableFinished && isClosed());
    act(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, closed };
}

const zeros = Buffer.alloc(2 ** 20);
function writeEndlessly(response: ServerResponse): void {
  const more = () => response.destroyed || response.write(zeros, () => setImmediate(more));
  more();
}

it("returns the status, the headers and the whole body", async () => {
  const { url } = await serve((response) => response.writeHead(404, { x: "y" }).end("größer"));
  const statuses: number[] = [];
  const limits = { timeoutSeconds: 5, onStatus: (status: number) => statuses.push(status) };
  const reply = await fetchBounded(url, {}, limits);
  expect([reply.text(), reply.response.headers.get("x"), statuses]).toEqual(["größer", "y", [404]]);
});

it("cancels a body that exceeds 8 MiB", async () => {
  const { url, closed } = await serve(writeEndlessly);
  await expect(fetchBounded(url, {}, { timeoutSeconds: 5 })).rejects.toBeInstanceOf(ReplyTooLargeError);
  await closed;
});

it("counts decompressed bytes", async () => {
  const bomb = gzipSync(Buffer.alloc(2 ** 20));
  const { url } = await serve((response) =>
    response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
  );
  expect(bomb.length).toBeLessThan(2000);
  const get = (maxBytes: number) => fetchBounded(url, {}, { timeoutSeconds: 5, maxBytes });
  await expect(get(2 ** 20 - 1)).rejects.toBeInstanceOf(ReplyTooLargeError);
  expect((await get(2 ** 20)).bytes).toHaveLength(2 ** 20);
});

it("cancels an endless body at the time limit and when the caller aborts", async () => {
  const limits = { timeoutSeconds: 0.1, maxBytes: Infinity };
  const first = await serve((response) => response.write("{"));
  await expect(fetchBounded(first.url, {}, limits)).rejects.toMatchObject({ name: "TimeoutError" });
  await first.closed;
  const second = await serve((response) => response.write("{"));
  const abort = new AbortController();
  const asked = fetchBounded(
    second.url,
    { signal: abort.signal },
    { timeoutSeconds: 5, onStatus: () => void setTimeout(() => abort.abort(new Error("enough")), 20) },
  );
  await expect(asked).rejects.toThrow("enough");
  await second.closed;
});
