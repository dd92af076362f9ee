import { expect, it, onTestFinished, vi } from "vitest";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { serveResults } from "./serve-results.ts";

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

it("follows a run: a new snapshot, new training curves, and the end of its process", async () => {
  const root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  await store.put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const serving = await serveResults({ root, port: 0 });
  onTestFinished(() => serving.close());
  const page = await (await fetch(`${serving.address}?results_dir=run`)).text();
  const { address } = JSON.parse(/id="live">([^<]*)</.exec(page)![1]!) as { address: string };
  const reply = await fetch(new URL(address, serving.address));
  expect(reply.headers.get("Content-Type")).toBe("text/event-stream; charset=UTF-8");
  const client = eventsOf(reply.body!);
  const changes = (count: number) =>
    vi.waitFor(() => expect(client.counted.changes).toBe(count), { timeout: 8000 });
  await store.put(exampleSnapshot({ phase: "em", step: 100 }), []);
  await changes(1);
  const points = [{ step: 1, runStep: 1, metrics: { loss: 2 } }];
  await store.recordTraining!({ phase: "em", points, replace: false });
  await changes(2);
  await store.close!();
  await changes(3);
  await client.close();
});
