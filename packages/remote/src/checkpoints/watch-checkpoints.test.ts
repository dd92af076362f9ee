import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type WatchedCheckpoint, watchCheckpoints } from "./watch-checkpoints.ts";

let folder = "";
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "checkpoints-"))));
afterEach(() => rm(folder, { recursive: true }));

async function checkpoint(name: string, state: string | null): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "config.json"), "{}");
  if (state !== null) await writeFile(join(folder, name, "trainer_state.json"), state);
}

async function all(found: AsyncIterable<WatchedCheckpoint>): Promise<WatchedCheckpoint[]> {
  const list: WatchedCheckpoint[] = [];
  for await (const each of found) list.push(each);
  return list;
}

it("yields the complete checkpoints of both layouts in numerical order of their steps", async () => {
  await checkpoint("step_100", '{"max_steps": 200}');
  await checkpoint("checkpoint-20", '{"max_steps": 200}');
  await checkpoint("step_5", "{}");
  await checkpoint("step_150", null);
  await checkpoint("step_160", '{"max_st');
  await checkpoint("best", "{}");
  expect(await all(watchCheckpoints(folder, { follow: false }))).toEqual([
    { step: 5, path: join(folder, "step_5"), maxSteps: null },
    { step: 20, path: join(folder, "checkpoint-20"), maxSteps: 200 },
    { step: 100, path: join(folder, "step_100"), maxSteps: 200 },
  ]);
});

it("waits for a folder that does not exist yet, and ends after the checkpoint of the last step", async () => {
  const late = join(folder, "late");
  const found = all(watchCheckpoints(late, { pollSeconds: 0.01 }));
  folder = late;
  await checkpoint("step_1", '{"max_steps": 2}');
  await checkpoint("step_2", '{"max_steps": 2}');
  expect((await found).map(({ step }) => step)).toEqual([1, 2]);
  folder = join(late, "..");
});

it("ends without an error on abort, and throws for a missing folder", async () => {
  expect(await all(watchCheckpoints(folder, { signal: AbortSignal.abort() }))).toEqual([]);
  await expect(all(watchCheckpoints(join(folder, "none"), { follow: false }))).rejects.toThrow(
    /none: got ENOENT/,
  );
});

it("ends after a checkpoint with finished: true before max_steps", async () => {
  await checkpoint("step_3", '{"max_steps": 9, "finished": false}');
  await checkpoint("step_5", '{"max_steps": 9, "finished": true}');
  const found = await all(watchCheckpoints(folder, { pollSeconds: 0.01 }));
  expect(found.map(({ step }) => step)).toEqual([3, 5]);
});

it("continues after a checkpoint with finished: true if a later one exists", async () => {
  await checkpoint("step_5", '{"max_steps": 5, "finished": true}');
  await checkpoint("step_7", '{"max_steps": 7, "finished": true}');
  const found = await all(watchCheckpoints(folder, { pollSeconds: 0.01 }));
  expect(found.map(({ step }) => step)).toEqual([5, 7]);
});

it("yields an adapter's checkpoint, which has adapter_config.json instead of config.json", async () => {
  await mkdir(join(folder, "checkpoint-4"));
  await writeFile(join(folder, "checkpoint-4", "trainer_state.json"), "{}");
  expect(await all(watchCheckpoints(folder, { follow: false }))).toEqual([]);
  await writeFile(join(folder, "checkpoint-4", "adapter_config.json"), "{}");
  expect((await all(watchCheckpoints(folder, { follow: false }))).map(({ step }) => step)).toEqual([4]);
});

it("throws for wrong options when called", () => {
  expect(() => watchCheckpoints(folder, { pollSeconds: Number.NaN })).toThrow(
    "watchCheckpoints options.pollSeconds: got NaN, expected a finite number above 0",
  );
  expect(() => watchCheckpoints(folder, { pollSeconds: 0 })).toThrow("pollSeconds: got 0");
  expect(() => watchCheckpoints(folder, { poll: 2 } as object)).toThrow(
    'watchCheckpoints options.poll: got the unknown option "poll", expected one of follow, pollSeconds, signal',
  );
  expect(() => watchCheckpoints("")).toThrow('watchCheckpoints folder: got "", expected a folder\'s path');
});
