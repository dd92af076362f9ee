import {
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { watchCheckpoints } from "./watch-checkpoints.ts";

afterEach(() => void vi.restoreAllMocks());
const source = temporaryFolder(afterAll);

/** A safetensors file with one tensor of bytes that are not 0. */
function weightsOf(step: number, bytes: number): Buffer {
  const header = JSON.stringify({ w: { dtype: "U8", shape: [bytes], data_offsets: [0, bytes] } });
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, Buffer.from(header), Buffer.alloc(bytes, step)]);
}

const shard = (n: number) => `model-0000${n}-of-00002.safetensors`;
const [index, state] = ["model.safetensors.index.json", "trainer_state.json"];
const files = ["config.json", index, shard(1), shard(2), "optimizer.pt", "tokenizer.json", state];
const steps = [1, 2, 3];

/** Returns the files of a training of three steps, by their paths in the folder. */
function trainingFiles(): ReadonlyMap<string, Buffer> {
  const contents = (step: number): Readonly<Record<string, Buffer>> => ({
    "config.json": Buffer.from('{"model_type": "llama"}'),
    [index]: Buffer.from(JSON.stringify({ weight_map: { a: shard(1), b: shard(2) } })),
    [shard(1)]: weightsOf(step, 20_000),
    [shard(2)]: weightsOf(step, 30_000),
    "optimizer.pt": Buffer.alloc(60_000, 7),
    "tokenizer.json": Buffer.from(JSON.stringify({ model: { vocab: { [`word ${step}`]: 0 } } })),
    [state]: Buffer.from(JSON.stringify({ max_steps: 3, log_history: [{ step: 1, loss: 2 }] })),
  });
  return new Map(
    steps.flatMap((step) => files.map((name) => [`checkpoint-${step}/${name}`, contents(step)[name]!])),
  );
}

/** One action of a program that copies, between two reads of the folder. */
type Action = () => void;

const chunk = 9000;

/** Appends a file in chunks, as `scp` does. */
function append(folder: string, path: string, content: Buffer): Action[] {
  const target = join(folder, path);
  return Array.from({ length: Math.ceil(content.length / chunk) }, (_, at) => () => {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content.subarray(at * chunk, (at + 1) * chunk), { flag: at === 0 ? "w" : "a" });
  });
}

/** Reserves the file's length, and writes its chunks in another order. */
function preallocate(folder: string, path: string, content: Buffer): Action[] {
  const target = join(folder, path);
  const reserve = () => {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, "");
    truncateSync(target, content.length);
  };
  const write = (from: number) => () => {
    const file = openSync(target, "r+");
    writeSync(file, content, from, Math.min(chunk, content.length - from), from);
    closeSync(file);
  };
  const starts = Array.from({ length: Math.ceil(content.length / chunk) }, (_, at) => at * chunk);
  // The header comes first, the last chunk before those in the middle.
  const [first, ...rest] = starts;
  return [reserve, write(first!), ...rest.toReversed().map(write)];
}

/** Writes a temporary file, and renames it with the time of its source. */
function renameWhole(temporary: (path: string) => string) {
  return (folder: string, path: string, content: Buffer): Action[] => [
    ...append(folder, temporary(path), content),
    () => renameSync(join(folder, temporary(path)), join(folder, path)),
    () => utimesSync(join(folder, path), 1_700_000_000, 1_700_000_000),
  ];
}

const inFolder = (path: string, name: (file: string) => string) =>
  join(dirname(path), name(path.slice(dirname(path).length + 1)));

const byRank = (rank: (path: string) => number) => (paths: readonly string[]) =>
  paths.toSorted((a, b) => stepOf(a) - stepOf(b) || rank(a) - rank(b));
const stepOf = (path: string) => Number(/checkpoint-(\d+)/.exec(path)![1]);
const isWeights = (path: string) => path.endsWith(".safetensors");

/** Takes an action of each list in turn. */
const interleaved = (lists: readonly Action[][]): Action[] =>
  Array.from({ length: Math.max(...lists.map(({ length }) => length)) }, (_, at) =>
    lists.flatMap((list) => list[at] ?? []),
  ).flat();

const statesFirst = byRank((path) => (path.endsWith(state) ? 0 : isWeights(path) ? 2 : 1));
const weightsFirst = byRank((path) => (isWeights(path) ? 0 : path.endsWith(state) ? 1 : 2));
const indexFirst = byRank((path) => (path.endsWith(index) ? 0 : 1));
/** Puts pauses between the actions of each file. */
const withPauses = (reads: number) => (lists: readonly Action[][]) =>
  lists.flatMap((list) =>
    list.flatMap((action, at) => [
      action,
      ...Array.from({ length: at < list.length - 1 ? reads : 0 }, () => () => undefined),
    ]),
  );
const inTurn = (lists: readonly Action[][]) => lists.flat();

it.each([
  ["the state first and the weights last", statesFirst, append, inTurn],
  ["the weights first", weightsFirst, append, inTurn],
  ["shards of all checkpoints in turn, after their index", indexFirst, append, interleaved],
  [
    "into files of full length, the middle last",
    statesFirst,
    preallocate,
    // The network stalls for 20 s after each chunk.
    withPauses(10),
  ],
  [
    "under the temporary names of rsync",
    weightsFirst,
    renameWhole((path) => inFolder(path, (file) => `.${file}.Xy12ab`)),
    inTurn,
  ],
  [
    "under the temporary names of rclone, with pauses",
    weightsFirst,
    renameWhole((path) => `${path}.1a2b3c4d.partial`),
    withPauses(3),
  ],
])("yields each checkpoint once, whole, while a program copies %s", async (_, order, copy, mix) => {
  const folder = join(source, `${_.length}`);
  const contents = trainingFiles();
  const actions = mix(order([...contents.keys()]).map((path) => copy(folder, path, contents.get(path)!)));
  // Each read of the folder finds one more action done, two seconds later.
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    actions.shift()?.();
    return (clock += 2000);
  });
  const yielded: number[] = [];
  for await (const { step, path } of watchCheckpoints(folder, { pollSeconds: 0.001, log: () => undefined })) {
    yielded.push(step);
    for (const name of files.filter((file) => file !== "optimizer.pt"))
      expect([
        step,
        name,
        readFileSync(join(path, name)).equals(contents.get(`checkpoint-${step}/${name}`)!),
      ]).toEqual([step, name, true]);
  }
  expect(yielded).toEqual(steps);
});

/** Writes a checkpoint, with the time at which its trainer wrote it. */
function writeCheckpoint(folder: string, step: number, trainerState: object, at: number): void {
  const path = join(folder, `checkpoint-${step}`);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), "{}");
  writeFileSync(join(path, "model.safetensors"), weightsOf(step, 100));
  writeFileSync(join(path, state), JSON.stringify(trainerState));
  utimesSync(join(path, state), at, at);
}

it.each([
  ["other losses", { max_steps: 900, log_history: [{ step: 1, loss: 9 }] }],
  ["another total and no log", { max_steps: 900 }],
])("does not take a checkpoint of an earlier training with %s for the end", async (_, earlier) => {
  const folder = join(source, `earlier-${_.length}`);
  const log = "log_history" in earlier ? { log_history: [{ step: 1, loss: 2 }] } : {};
  writeCheckpoint(folder, 900, earlier, 1000);
  writeCheckpoint(folder, 100, { max_steps: 300, ...log }, 2000);
  const lines: string[] = [];
  const yielded: number[] = [];
  const found = watchCheckpoints(folder, { pollSeconds: 0.01, log: (line) => lines.push(line) });
  for await (const { step, maxSteps } of found) {
    yielded.push(step);
    expect(maxSteps).toBe(300);
    if (step < 300) writeCheckpoint(folder, step + 100, { max_steps: 300, ...log }, 2000 + step);
  }
  expect(yielded).toEqual([100, 200, 300]);
  expect(lines).toEqual([
    expect.stringMatching(/^checkpoint-900 is of an earlier training than step 100, which was written later/),
  ]);
  expect(existsSync(join(folder, "checkpoint-900"))).toBe(true);
});

it("yields checkpoints of a loop that logs only the steps since the one before", async () => {
  const folder = join(source, "plain-loop");
  for (const step of [100, 200, 300])
    writeCheckpoint(folder, step, { max_steps: 300, log_history: [{ step, loss: 300 / step }] }, step);
  const yielded: number[] = [];
  for await (const { step } of watchCheckpoints(folder, { pollSeconds: 0.01, log: () => undefined }))
    yielded.push(step);
  expect(yielded).toEqual([100, 200, 300]);
});

it("does not take the end of an earlier training that began alike for the end of a longer one", async () => {
  const folder = join(source, "longer");
  const log_history = [{ step: 1, loss: 2 }];
  writeCheckpoint(folder, 900, { max_steps: 900, log_history }, 1000);
  writeCheckpoint(folder, 500, { max_steps: 1000, log_history }, 2000);
  const yielded: number[] = [];
  for await (const { step } of watchCheckpoints(folder, { pollSeconds: 0.01, log: () => undefined })) {
    yielded.push(step);
    if (step === 900) writeCheckpoint(folder, 1000, { max_steps: 1000, log_history }, 3000);
  }
  expect(yielded).toEqual([500, 900, 1000]);
});

it.each(["skip", "end"] as const)(
  "%ss when a checkpoint becomes complete only after a later one was yielded",
  async (late) => {
    const folder = join(source, late);
    writeCheckpoint(folder, 10, { max_steps: 20 }, 1000);
    const lines: string[] = [];
    const found = watchCheckpoints(folder, { pollSeconds: 0.01, late, log: (line) => lines.push(line) });
    expect((await found.next()).value).toMatchObject({ step: 10 });
    writeCheckpoint(folder, 5, { max_steps: 20 }, 500);
    if (late === "end") {
      expect(await found.next()).toEqual({ done: true, value: { isFinished: false, isLate: true } });
      expect(lines).toEqual([]);
      return;
    }
    const next = found.next();
    await vi.waitUntil(() => lines.length > 0);
    expect(lines).toEqual([
      "checkpoint-5 is complete only after a later checkpoint was read, and is skipped",
    ]);
    writeCheckpoint(folder, 20, { max_steps: 20 }, 2000);
    expect((await next).value).toMatchObject({ step: 20 });
    expect(statSync(join(folder, "checkpoint-5")).isDirectory()).toBe(true);
  },
);

it("skips with a line a checkpoint that does not change for a minute while later ones are complete", async () => {
  const folder = join(source, "crashed");
  for (const step of [1, 2, 3]) writeCheckpoint(folder, step, { max_steps: 3 }, step);
  truncateSync(join(folder, "checkpoint-2", "model.safetensors"), 70);
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (clock += 2000));
  const lines: string[] = [];
  const found = watchCheckpoints(folder, { pollSeconds: 0.001, log: (line) => lines.push(line) });
  expect((await found.next()).value).toMatchObject({ step: 1 });
  const before = clock;
  expect((await found.next()).value).toMatchObject({ step: 3 });
  expect([clock - before > 50_000, clock - before < 70_000]).toEqual([true, true]);
  expect(lines).toContainEqual(
    expect.stringMatching(
      /^checkpoint-2 is incomplete although a later checkpoint is complete, and is skipped: model\.safetensors: got a (file|header) of \d+ bytes, expected /,
    ),
  );
});
