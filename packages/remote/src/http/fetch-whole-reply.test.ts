import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { fetchWholeReply } from "./fetch-whole-reply.ts";

it("rejects at the time limit if the body stalls, even after a garbage collection", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"choices": [');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const collecting = setInterval(collectGarbage, 50);
  const ask = () => fetchWholeReply(0.5)(url, { method: "POST", body: "{}" });
  const replies = await Promise.allSettled(Array.from({ length: 5 }, ask));
  clearInterval(collecting);
  server.closeAllConnections();
  server.close();
  expect(replies.map((one) => one.status === "rejected" && String(one.reason))).toEqual(
    Array(5).fill("TimeoutError: timed out after 0.5 s"),
  );
});

it("returns a status that clients do not retry if the body is too large", async () => {
  const server = createServer((_, response) => response.end(JSON.stringify({ text: "x".repeat(1000) })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const whole = await fetchWholeReply(5, 1011)(url);
  const cut = await fetchWholeReply(5, 1010)(url);
  server.closeAllConnections();
  server.close();
  expect([whole.status, await whole.json()]).toEqual([200, { text: "x".repeat(1000) }]);
  expect([cut.status, cut.headers.get("x-should-retry"), await cut.json()]).toEqual([
    502,
    "false",
    { error: { message: "the server sent a reply of more than 1010 bytes" } },
  ]);
});

it("returns JSON as JSON, whatever type the server gives it", async () => {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const reply = await fetchWholeReply(5)(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.closeAllConnections();
  server.close();
  expect(reply.headers.get("content-type")).toBe("application/json");
});

it.each([
  ["waits until a rate limit ends", 429, { "ratelimit-reset": "45" }, "45"],
  ["prefers Retry-After", 429, { "retry-after": "5", "x-ratelimit-reset": "45" }, "5"],
  ["does not wait a day until a rate limit ends", 429, { "x-rate-limit-reset": "86400" }, null],
  ["does not wait for a rate limit that is not exceeded", 503, { "ratelimit-reset": "45" }, null],
])("%s", async (_, status, sent, wait) => {
  const server = createServer((_request, response) => response.writeHead(status, sent).end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const reply = await fetchWholeReply(5)(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.closeAllConnections();
  server.close();
  expect(reply.headers.get("retry-after")).toBe(wait);
  expect([...reply.headers.keys()].filter((name) => name.includes("limit"))).toEqual([]);
});
