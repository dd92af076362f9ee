import { rm } from "node:fs/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { serveResults } from "./serve-results.ts";

it("reports the versions of a run: a new snapshot, new training curves, the end of its process, and that it is gone", async () => {
  const root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  await store.put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const serving = await serveResults({ root, port: 0 });
  onTestFinished(() => serving.close());
  const page = await (await fetch(`${serving.address}?results_dir=run`)).text();
  let shown = JSON.parse(/id="live">([^<]*)</.exec(page)![1]!) as { address: string; version: string };
  const poll = async () => {
    const reply = await fetch(new URL(shown.address, serving.address));
    return reply.ok ? ((await reply.json()) as { version: string }).version : reply.status;
  };
  expect(await poll()).toBe(shown.version);
  const change = () =>
    vi.waitFor(
      async () => {
        const version = await poll();
        expect(version).not.toBe(shown.version);
        shown = { ...shown, version: String(version) };
      },
      { timeout: 8000 },
    );
  await store.put(exampleSnapshot({ phase: "em", step: 100 }), []);
  await change();
  const points = [{ step: 1, runStep: 1, metrics: { loss: 2 } }];
  await store.recordTraining!({ phase: "em", points, replace: false });
  await change();
  await store.close!();
  await change();
  await rm(join(root, "run"), { recursive: true });
  await vi.waitFor(async () => expect(await poll()).toBe(404), { timeout: 8000 });
});
