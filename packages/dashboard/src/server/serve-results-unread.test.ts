import { once } from "node:events";
import { createServer, ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { serveResults, limitUnreadReplies } from "./serve-results.ts";

it("closes the connections of the oldest replies that clients do not read", async () => {
  const mebibyte = 2 ** 20;
  const body = "x".repeat(16 * mebibyte);
  const server = createServer((_, reply) => void reply.end(body));
  limitUnreadReplies(server, 40 * mebibyte);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  let [begun, open] = [0, 0];
  server.on("connection", (socket) => {
    begun += 1;
    open += 1;
    socket.once("close", () => (open -= 1));
  });
  const { port } = server.address() as AddressInfo;
  const clients = [];
  for (let at = 0; at < 8; at++) {
    const client = connect(port, "127.0.0.1").on("error", () => undefined);
    client.pause();
    client.write(`GET /${at} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
    clients.push(client);
    await vi.waitFor(() => expect(begun).toBe(at + 1), 60_000);
  }
  // Each keeps at least 10 of its 16 MiB in this process; the rest is in the system's buffers.
  await vi.waitFor(() => expect(open).toBeLessThanOrEqual(4), 60_000);
  expect(open).toBeGreaterThanOrEqual(2);
  const newest = clients.at(-1)!;
  let received = 0;
  newest.on("data", (chunk: Buffer) => (received += chunk.length));
  newest.resume();
  await once(newest, "close");
  expect(received).toBeGreaterThan(body.length);
});

it.each(["text/html", "application/json"])(
  "sends a %s reply as bytes, which do not fill the heap while the client does not read",
  async (accept) => {
    const serving = await serveResults({ root: temporaryFolder(), port: 0 });
    onTestFinished(() => serving.close());
    const end = vi.spyOn(ServerResponse.prototype, "end");
    onTestFinished(() => end.mockRestore());
    const reply = await fetch(serving.address, { headers: { Accept: accept } });
    expect([reply.status, reply.headers.get("Content-Type")!.startsWith(accept)]).toEqual([200, true]);
    expect(end.mock.calls.map(([body]) => (body as unknown) instanceof Uint8Array)).toEqual([true]);
  },
);
