import { syncBuiltinESMExports } from "node:module";
import promises, { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { serveResults } from "./serve-results.ts";

it("stops reading for requests that the client abandoned, so that a small page does not wait for them", async () => {
  const root = temporaryFolder();
  for (let at = 0; at < 200; at++) {
    await mkdir(join(root, `${at}`));
    await writeFile(join(root, `${at}`, "metrics.json"), "{}");
  }
  let reads = 0;
  const serving = await serveResults({
    root,
    port: 0,
    async readResults() {
      reads++;
      await delay(10);
      return { runs: [], samples: [] };
    },
  });
  const abandon = new AbortController();
  const { signal } = abandon;
  const abandoned = Array.from({ length: 6 }, async () =>
    fetch(`${serving.address}?per_page=200`, { signal }).then((reply) => reply.text()),
  );
  await delay(50);
  abandon.abort();
  await Promise.allSettled(abandoned);
  const began = performance.now();
  const reply = await fetch(`${serving.address}?results_dir=7`);
  expect(await reply.text()).toContain("7");
  // Six pages of 200 parts take 12 s.
  expect(performance.now() - began).toBeLessThan(6000);
  const before = reads;
  await delay(50);
  expect(reads).toBe(before);
  await serving.close();
});

it("searches a folder once for the clients that follow it at the same time", async () => {
  const root = temporaryFolder();
  for (let at = 0; at < 100; at++) await mkdir(join(root, `${at % 10}`, `${at}`), { recursive: true });
  const serving = await serveResults({ root, port: 0 });
  const follow = async () => (await fetch(`${serving.address}/version`, { method: "HEAD" })).status;
  const reads = vi.spyOn(promises, "readdir");
  syncBuiltinESMExports();
  await follow();
  const ofOne = reads.mock.calls.length;
  reads.mockClear();
  const all = await Promise.all(Array.from({ length: 200 }, follow));
  expect(all).toEqual(all.map(() => 200));
  expect(ofOne).toBeGreaterThan(100);
  // 200 searches read 200 times as many folders.
  expect(reads.mock.calls.length).toBeLessThan(20 * ofOne);
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await serving.close();
});
