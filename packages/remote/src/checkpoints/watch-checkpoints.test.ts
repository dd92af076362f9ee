import { mkdirSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, open, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type WatchedCheckpoint, watchCheckpoints } from "./watch-checkpoints.ts";

let folder = "";
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "checkpoints-"))));
afterEach(() => rm(folder, { recursive: true }));

async function checkpoint(name: string, state: string | null): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "config.json"), "{}");
  await writeWeights(join(folder, name, "model.safetensors"));
  if (state !== null) await writeFile(join(folder, name, "trainer_state.json"), state);
}

const full = { kind: "full", losses: [] };

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
  expect(await all(watchCheckpoints(folder, { follow: false, pollSeconds: 0.01 }))).toEqual([
    { step: 5, path: join(folder, "step_5"), maxSteps: null, ...full, waiting: 4 },
    { step: 20, path: join(folder, "checkpoint-20"), maxSteps: 200, ...full, waiting: 3 },
    { step: 100, path: join(folder, "step_100"), maxSteps: 200, ...full, waiting: 2 },
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
  await expect(
    all(watchCheckpoints(join(folder, "none"), { follow: false, pollSeconds: 0.01 })),
  ).rejects.toThrow(/none: got ENOENT/);
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
  expect(await all(watchCheckpoints(folder, { follow: false, pollSeconds: 0.01 }))).toEqual([]);
  await writeFile(join(folder, "checkpoint-4", "adapter_config.json"), "{}");
  await writeWeights(join(folder, "checkpoint-4", "adapter_model.safetensors"));
  expect(
    (await all(watchCheckpoints(folder, { follow: false, pollSeconds: 0.01 }))).map(({ step }) => step),
  ).toEqual([4]);
});

it("throws for wrong options when called", () => {
  expect(() => watchCheckpoints(folder, { pollSeconds: Number.NaN })).toThrow(
    "watchCheckpoints options.pollSeconds: got NaN, expected a finite number above 0",
  );
  expect(() => watchCheckpoints(folder, { pollSeconds: 0 })).toThrow("pollSeconds: got 0");
  expect(() => watchCheckpoints(folder, { poll: 2 } as object)).toThrow(
    'watchCheckpoints options.poll: got the unknown option "poll", expected one of follow, pollSeconds, pattern, order, after, late, log, signal',
  );
  expect(() => watchCheckpoints("")).toThrow('watchCheckpoints folder: got "", expected a folder\'s path');
});

/** Writes a safetensors file with one tensor. */
async function writeWeights(path: string): Promise<void> {
  const header = JSON.stringify({ w: { dtype: "F32", shape: [2], data_offsets: [0, 8] } });
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  await writeFile(path, Buffer.concat([length, Buffer.from(header), Buffer.alloc(8, 1)]));
}

const steps = async (options: Parameters<typeof watchCheckpoints>[1] = {}) =>
  (
    await all(
      watchCheckpoints(folder, { follow: false, pollSeconds: 0.01, log: () => undefined, ...options }),
    )
  ).map(({ step }) => step);

it.each(["adapter_model.safetensors", "model-00001-of-00002.safetensors"])(
  "does not yield a checkpoint while %s is missing or shorter than its header says",
  async (name) => {
    await checkpoint("checkpoint-4", '{"max_steps": 8}');
    const path = join(folder, "checkpoint-4", name);
    if (name.startsWith("model"))
      await writeFile(
        join(folder, "checkpoint-4", "model.safetensors.index.json"),
        JSON.stringify({ weight_map: { w: name } }),
      );
    else {
      await writeFile(path, "");
      await writeFile(join(folder, "checkpoint-4", "adapter_config.json"), "{}");
    }
    expect(await steps()).toEqual([]);
    await writeWeights(path);
    expect(await steps()).toEqual([4]);
    for (const size of [68, 30, 8, 3]) {
      await truncate(path, size);
      expect(await steps()).toEqual([]);
    }
  },
);

it("reads kind, epoch and losses, also if Python wrote NaN", async () => {
  const log = [
    { step: 1, epoch: 0.5, loss: 2.5, note: "x" },
    { step: 2, loss: 1 },
    { step: 2, grad_norm: 0 },
  ];
  const state = JSON.stringify({ max_steps: 2, epoch: 1, log_history: log }).replace(
    'grad_norm":0',
    'grad_norm":NaN',
  );
  await checkpoint("checkpoint-2", state);
  await writeFile(join(folder, "checkpoint-2", "adapter_config.json"), "{}");
  await writeWeights(join(folder, "checkpoint-2", "adapter_model.safetensors"));
  expect(await all(watchCheckpoints(folder, { pollSeconds: 0.01 }))).toEqual([
    {
      step: 2,
      path: join(folder, "checkpoint-2"),
      maxSteps: 2,
      epoch: 1,
      kind: "adapter",
      losses: [
        { step: 1, epoch: 0.5, metrics: { loss: 2.5 } },
        { step: 2, epoch: null, metrics: { loss: 1 } },
      ],
      waiting: 0,
    },
  ]);
});

it("leaves out steps that are no safe integers, which a session would refuse", async () => {
  const log = [0.5, -1, 1e300, 2].map((step) => ({ step, loss: 1 }));
  await checkpoint("checkpoint-4", JSON.stringify({ max_steps: 8.5, log_history: log }));
  await checkpoint("checkpoint-99999999999999999999", "{}");
  const found = await all(watchCheckpoints(folder, { follow: false, pollSeconds: 0.01 }));
  expect(found).toMatchObject([
    { step: 4, maxSteps: null, losses: [{ step: 2, epoch: null, metrics: { loss: 1 } }], waiting: 0 },
  ]);
});

it("says after a minute without a new checkpoint what it waits for", async () => {
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (clock += 10_000));
  await checkpoint("checkpoint-2", '{"max_steps": 4}');
  const lines: string[] = [];
  const stop = new AbortController();
  const log = (line: string) => {
    lines.push(line);
    if (lines.length === 1) mkdirSync(join(folder, "checkpoint-4"));
    if (lines.length === 2) writeFileSync(join(folder, "checkpoint-4", "config.json"), "{}");
    if (lines.length === 3) stop.abort();
  };
  await all(watchCheckpoints(folder, { pollSeconds: 0.001, log, signal: stop.signal }));
  expect(lines).toEqual([
    `no new checkpoint in ${folder} for 60 s, waiting for one after step 2 of 4`,
    expect.stringMatching(/waiting for checkpoint-4: it is being written$/),
    expect.stringMatching(/waiting for checkpoint-4: its weights are missing$/),
  ]);
  vi.restoreAllMocks();
});

it("says that a trainer without max_steps must say when it has finished", async () => {
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (clock += 10_000));
  await checkpoint("checkpoint-2", "{}");
  const lines: string[] = [];
  const stop = new AbortController();
  const log = (line: string) => {
    lines.push(line);
    stop.abort();
  };
  await all(watchCheckpoints(folder, { pollSeconds: 0.001, log, signal: stop.signal }));
  expect(lines).toEqual([
    expect.stringMatching(
      /for one after step 2: the trainer writes no max_steps, so only "finished": true in/,
    ),
  ]);
  vi.restoreAllMocks();
});

it("finds checkpoints by a pattern, and yields one when it no longer changes", async () => {
  const options = { pattern: "global_step.{step}/actor/hf", pollSeconds: 0.05 };
  await checkpoint("global_step.5/actor/hf", null);
  await checkpoint("global_step_6/actor/hf", null);
  await checkpoint("global_step.7/actor", null);
  expect(await steps(options)).toEqual([5]);
  // While the reads go on, a file of the trainer grows beside the model.
  const growing = setInterval(() => {
    writeFileSync(join(folder, "global_step.5", "actor", "optim.pt"), String(Math.random()).repeat(9));
  }, 2);
  const found = steps(options);
  expect(await Promise.race([found, sleep(300)])).toBe(undefined);
  clearInterval(growing);
  expect(await found).toEqual([5]);
});

it("yields only the newest complete checkpoint in the order `latest`", async () => {
  for (const at of [1, 2, 3]) await checkpoint(`step_${at}`, '{"max_steps": 5}');
  await checkpoint("step_4", null);
  const found = watchCheckpoints(folder, { order: "latest", pollSeconds: 0.01, log: () => undefined });
  expect((await found.next()).value).toMatchObject({ step: 3, waiting: 1 });
  for (const at of [4, 5]) await checkpoint(`step_${at}`, '{"max_steps": 5}');
  expect((await found.next()).value).toMatchObject({ step: 5, waiting: 0 });
  expect(await found.next()).toEqual({ done: true, value: { isFinished: true, isLate: false } });
});

it("skips deleted and incomplete checkpoints with a line, and yields only those after a step", async () => {
  const lines: string[] = [];
  for (const at of [1, 2, 3, 4, 6]) await checkpoint(`checkpoint-${at}`, at === 4 ? null : "{}");
  const found = watchCheckpoints(folder, {
    follow: false,
    pollSeconds: 0.01,
    after: 1,
    log: (line) => lines.push(line),
  });
  expect((await found.next()).value).toMatchObject({ step: 2, waiting: 3 });
  await rename(join(folder, "checkpoint-3"), join(folder, "gone"));
  expect((await found.next()).value).toMatchObject({ step: 6 });
  expect(await found.next()).toEqual({ done: true, value: { isFinished: false, isLate: false } });
  expect(lines).toEqual([
    "checkpoint-3 was deleted before it was read, and is skipped",
    "checkpoint-4 is incomplete although a later checkpoint is complete, and is skipped: trainer_state.json is missing",
  ]);
});

/** A program that reserves the size of a file, writes its beginning, and fills it later. */
async function preallocated(path: string): Promise<() => Promise<void>> {
  const whole = await readFile(path);
  const file = await open(path, "w");
  await file.truncate(whole.length);
  await file.write(whole, 0, whole.length - 8, 0);
  return async () => {
    await file.write(whole, whole.length - 8, 8, whole.length - 8);
    await file.close();
  };
}

it("does not yield a checkpoint whose weights a program has reserved and not yet filled", async () => {
  await checkpoint("checkpoint-2", '{"max_steps": 4}');
  const fill = await preallocated(join(folder, "checkpoint-2", "model.safetensors"));
  await checkpoint("checkpoint-4", '{"max_steps": 4}');
  const lines: string[] = [];
  const found = watchCheckpoints(folder, { pollSeconds: 0.02, log: (line) => lines.push(line) });
  const first = found.next();
  expect(await Promise.race([first, sleep(300)])).toBe(undefined);
  expect(lines).toEqual([
    expect.stringContaining("checkpoint-2 has blocks of zeros, as if it is still copied"),
  ]);
  await fill();
  expect((await first).value).toMatchObject({ step: 2 });
  expect((await found.next()).value).toMatchObject({ step: 4 });
});

it("yields a checkpoint with blocks of zeros that does not change for 30 s", async () => {
  const start = performance.now();
  let seconds = 0;
  vi.spyOn(performance, "now").mockImplementation(() => Date.now() - started + start + 1000 * seconds);
  const started = Date.now();
  await checkpoint("checkpoint-4", '{"max_steps": 4}');
  await preallocated(join(folder, "checkpoint-4", "model.safetensors"));
  const found = watchCheckpoints(folder, { pollSeconds: 0.01, log: () => (seconds += 20) });
  const first = found.next();
  expect(await Promise.race([first, sleep(100)])).toBe(undefined);
  seconds += 10;
  expect((await first).value).toMatchObject({ step: 4 });
  vi.restoreAllMocks();
});

it("says of each checkpoint that it does not wait for what is missing", async () => {
  await checkpoint("checkpoint-4", null);
  await checkpoint("checkpoint-6", '{"max_steps": 8}');
  await writeFile(join(folder, "checkpoint-6", "config.json"), '{"model_type": ');
  const lines: string[] = [];
  expect(await steps({ log: (line) => lines.push(line) })).toEqual([]);
  expect(lines).toEqual([
    "checkpoint-4 is incomplete, and is not read: trainer_state.json is missing",
    "checkpoint-6 is incomplete, and is not read: config.json cannot be parsed",
  ]);
});

it("does not yield a checkpoint without weights, or with shards without their index", async () => {
  await checkpoint("checkpoint-4", '{"max_steps": 4}');
  const weights = join(folder, "checkpoint-4", "model.safetensors");
  await rename(weights, join(folder, "checkpoint-4", "model-00001-of-00002.safetensors"));
  expect(await steps()).toEqual([]);
  await rm(join(folder, "checkpoint-4", "model-00001-of-00002.safetensors"));
  expect(await steps()).toEqual([]);
});

it.each([
  ["pytorch_model_fsdp_0", "accelerate merge-weights FOLDER/pytorch_model_fsdp_0 OUTPUT"],
  ["__0_0.distcp", "accelerate merge-weights FOLDER OUTPUT"],
  ["global_step4", "python FOLDER/zero_to_fp32.py FOLDER OUTPUT --safe_serialization"],
  ["model_world_size_2_rank_0.pt", "verl.model_merger merge --backend fsdp --local_dir FOLDER --target_dir"],
])("refuses a checkpoint with %s by the command that merges it", async (name, command) => {
  const path = join(folder, "checkpoint-4");
  await mkdir(join(path, name), { recursive: true });
  await writeFile(join(path, "trainer_state.json"), '{"max_steps": 8}');
  for (const follow of [false, true])
    await expect(
      all(watchCheckpoints(folder, { follow, pollSeconds: 0.01, log: () => undefined })),
    ).rejects.toMatchObject({
      code: "data",
      where: path,
      got: expect.stringContaining(`${name}, weights sharded by `),
      fix: expect.stringContaining(command.replaceAll("FOLDER", path)),
    });
  // Whole weights beside the parts, as stage3_gather_16bit_weights_on_model_save writes them.
  await checkpoint("checkpoint-4", '{"max_steps": 8}');
  expect(await steps()).toEqual([4]);
});
