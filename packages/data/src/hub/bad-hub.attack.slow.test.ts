// Hubs that reply with random faults. A file has the bytes that the hub listed, or there is an error; the key stays here.
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { attack, attackTimeout } from "../../../testing/src/attack.test-data.ts";
import { badServer, drawActs, key } from "../../../testing/src/bad-server.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { openHubCache } from "./cache.ts";
import { fetchFile } from "./download.ts";
import { openRepository } from "./repository.ts";

const sha = "c".repeat(40);
const repo = { type: "dataset", name: "o/n", revision: "main", where: "questions, hf:o/n" } as const;
const hashOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const goodAtFirst = fc.constantFrom(0, 1, 2, 3, 3);
/** Without faults that last until the client's time limit of a minute. */
const acts = drawActs(/stall/);
const cases = fc.record({ acts, goodAtFirst, lines: fc.integer({ min: 1, max: 3000 }) });

it("stores the listed bytes, or throws", { timeout: attackTimeout }, async () => {
  const cacheFolder = join(temporaryFolder(), "hub");
  vi.stubEnv("HF_HUB_OFFLINE", "0");
  vi.stubEnv("HF_TOKEN", key);
  vi.stubEnv("HF_HUB_CACHE", cacheFolder);
  let stored = 0;
  await attack(150, cases, async (drawn) => {
    rmSync(cacheFolder, { recursive: true, force: true });
    const content = Buffer.from("a file of the hub\n".repeat(drawn.lines));
    const [size, oid] = [content.length, hashOf(content)];
    const listed = {
      type: "file",
      path: "a.bin",
      size,
      oid: "0".repeat(40),
      lfs: { oid, size, pointerSize: 9 },
    };
    const about = { _id: "1", id: "o/n", sha, private: false, gated: false, lastModified: "2026-01-01" };
    const server = await badServer(
      drawn.acts,
      (url) => (url.includes("/tree/") ? [listed] : url.includes("/resolve/") ? content : about),
      drawn.goodAtFirst,
    );
    vi.stubEnv("HF_ENDPOINT", server.url);
    try {
      const repository = await openRepository(repo);
      const commit = await repository.commit();
      const file = (await repository.files(commit)).get("a.bin");
      if (file === undefined) return;
      const cache = openHubCache(repo);
      await fetchFile({ repo, cache, repository, commit }, file);
      expect(hashOf(readFileSync(join(cache.snapshot(commit), "a.bin"))), server.log.join()).toBe(oid);
      stored += 1;
    } catch (error) {
      if (!PeriodicEvalError.is(error)) throw error;
      server.expectNoKey(error);
    } finally {
      server.close();
    }
  });
  expect(stored).toBeGreaterThan(0);
});
