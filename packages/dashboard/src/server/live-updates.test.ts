import { expect, it, onTestFinished, vi } from "vitest";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { liveUpdates } from "./live-updates.ts";
import { resultsServer } from "./results-server.ts";

/** Counts the events of a stream. */
function eventsOf(stream: ReadableStream<Uint8Array>) {
  const counted = { changes: 0, isOver: false };
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  void (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      counted.changes += decoder.decode(value).split("event: change").length - 1;
    }
  })()
    .catch(() => undefined)
    .finally(() => (counted.isOver = true));
  return { counted, close: () => reader.cancel() };
}

it("reports a change to all clients of a folder, with one look for all", async () => {
  let [version, looks] = ["1", 0];
  const live = liveUpdates(async () => (looks++, version), { everyMs: 300 });
  const clients = Array.from({ length: 5 }, () => eventsOf(live.follow("run", "1", false)!));
  expect(live.clients).toBe(5);
  version = "2";
  await vi.waitFor(
    () => expect(clients.map(({ counted }) => counted.changes)).toEqual([1, 1, 1, 1, 1]),
    60_000,
  );
  expect(looks).toBeLessThan(5);
  for (const { close } of clients) await close();
  expect(live.clients).toBe(0);
});

it("reports a folder that is gone, and its return", async () => {
  let isGone = false;
  const look = async () => {
    if (isGone) throw new Error("ENOENT");
    return "1";
  };
  const client = eventsOf(liveUpdates(look, { everyMs: 1 }).follow("run", "1", false)!);
  isGone = true;
  await vi.waitFor(() => expect(client.counted.changes).toBe(1), 60_000);
  isGone = false;
  await vi.waitFor(() => expect(client.counted.changes).toBe(2), 60_000);
  await client.close();
});

it("tells a client at once if its page is older than the folder", async () => {
  const live = liveUpdates(async () => "2", { everyMs: 1e6 });
  const client = eventsOf(live.follow("run", "2", true)!);
  await vi.waitFor(() => expect(client.counted.changes).toBe(1), 60_000);
  await client.close();
});

it("keeps nothing of a client that has disconnected", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const live = liveUpdates(async () => "1", { everyMs: 1 });
  for (let at = 0; at < 3; at++) await live.follow("run", "1", false)!.cancel();
  await vi.advanceTimersByTimeAsync(10);
  expect(vi.getTimerCount()).toBe(0);
});

it("refuses clients beyond its limit, and drops those that do not read", async () => {
  let version = 0;
  const live = liveUpdates(async () => String(version++), { clients: 1, everyMs: 1 });
  const unread = live.follow("run", "", false)!;
  expect(live.follow("other", "", false)).toBeNull();
  await vi.waitFor(() => expect(live.clients).toBe(0), 60_000);
  await expect(
    unread
      .getReader()
      .read()
      .then(() => unread.getReader().read()),
  ).rejects.toThrow();
  const next = eventsOf(live.follow("other", "", false)!);
  await next.close();
});

it("serves the same page to all clients until a file changes", async () => {
  const root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  await store.put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const server = resultsServer({ root });
  const page = async () => (await server.request("/v1/eval?results_dir=run")).text();
  await new Promise((resolve) => setTimeout(resolve, 80));
  const [first, second] = await Promise.all([page(), page()]);
  expect(second).toBe(first);
  await store.put(exampleSnapshot({ phase: "em", step: 100 }), []);
  expect(await page()).toContain('"step":100');
  await store.close!();
});

it.each([
  ["/v1/eval?resultsdir=run", "parameters"],
  ["/v1/eval?results_dir=run&stepz=all", "parameters"],
  ["/v1/eval/events?page=2", "parameters"],
  ["/v1/eval/events?since=1&since=2", "since"],
  ["/v1/eval?page=7", null],
])("refuses %s", async (address, named) => {
  const root = temporaryFolder();
  await fileStore(join(root, "run")).put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const reply = await resultsServer({ root }).request(address, { headers: { Accept: "application/json" } });
  expect(reply.status).toBe(400);
  const { error } = (await reply.json()) as { error: string };
  if (named !== null) expect(error.startsWith(`${named}: got `)).toBe(true);
});

it("does not follow a folder outside of the served one", async () => {
  const server = resultsServer({ root: temporaryFolder() });
  for (const folder of ["..", "none", "/etc"])
    expect((await server.request(`/v1/eval/events?results_dir=${folder}`)).status).toBe(404);
});
