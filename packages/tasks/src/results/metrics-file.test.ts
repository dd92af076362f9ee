import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { faultyFiles } from "../../../testing/src/faulty-files.test-data.ts";
import { beforeEach, expect, it } from "vitest";
import { exampleRun } from "./example-run.test-data.ts";
import { appendRun, readMetrics } from "./metrics-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, "metrics.json");
});

const namesIn = async () => (await readMetrics(path)).runs.map(({ name }) => name);

it("adds each run once, in order, and keeps unknown keys", async () => {
  await appendRun(path, exampleRun);
  const { runs } = await readMetrics(path);
  await writeFile(
    path,
    JSON.stringify({ schema_version: 1, note: "by hand", runs: [{ ...runs[0], seen: true }] }),
  );
  await appendRun(path, { ...exampleRun, name: "dpo" });
  await appendRun(path, { ...exampleRun, name: "dpo" });
  await appendRun(path, { ...exampleRun, name: "dpo", timestamp: "2026-01-03T00:00:00.000Z" });
  expect(await namesIn()).toEqual(["sft", "dpo", "dpo"]);
  expect(await readMetrics(path)).toMatchObject({ note: "by hand", runs: [{ seen: true }, {}, {}] });
  expect(await readdir(folder)).toEqual(["metrics.json"]);
});

it("reads the files that it writes, and names the invalid field of others", async () => {
  await appendRun(path, exampleRun);
  expect((await readMetrics(path)).runs).toEqual([exampleRun]);
  const wrong = async (change: (run: Record<string, unknown>) => void, says: string) => {
    const run = structuredClone(exampleRun) as Record<string, unknown>;
    change(run);
    await writeFile(path, JSON.stringify({ schema_version: 1, runs: [exampleRun, run] }));
    await expect(readMetrics(path)).rejects.toThrow(says);
    await expect(appendRun(path, exampleRun)).rejects.toThrow(says);
  };
  await wrong((run) => delete run["name"], "metrics.json: runs[1].name: got undefined, expected a string");
  await wrong(
    (run) => (run["metrics"] = { "mmlu/acc,none": "0.5" }),
    'runs[1].metrics.mmlu/acc,none: got "0.5"',
  );
  await wrong((run) => (run["n"] = { "mmlu/acc,none": 0.5 }), "expected an integer of 0 or more");
  await wrong((run) => (run["metrics"] = { acc: 0.5 }), "runs[1].metrics.acc");
  await writeFile(path, '{"schema_version": 2, "runs": []}');
  await expect(readMetrics(path)).rejects.toThrow("schema_version: got 2, expected 1");
  await writeFile(path, '{"schema_version": 1, "ru');
  await expect(readMetrics(path)).rejects.toThrow("invalid JSON");
  await writeFile(path, '{"schema_version": 1, "runs": [], "runs": []}');
  await expect(readMetrics(path)).rejects.toThrow('metrics.json: got the key "runs" twice in one object');
  await expect(readMetrics(join(folder, "none.json"))).rejects.toThrow("got no such file");
});

it("reads and extends files from other programs, which have fewer fields", async () => {
  const {
    stderr: _,
    n: _n,
    ci95: _c,
    higher_is_better: _h,
    run_hash: _r,
    suite: _s,
    documents: _d,
    ...plain
  } = exampleRun;
  const defaults = {
    stderr: {},
    n: {},
    ci95: {},
    higher_is_better: {},
    run_hash: null,
    suite: null,
    documents: {},
  };
  await writeFile(path, JSON.stringify({ schema_version: 1, runs: [plain] }));
  expect((await readMetrics(path)).runs).toEqual([{ ...plain, ...defaults }]);
  await appendRun(path, { ...plain, name: "dpo" });
  await appendRun(path, { ...plain, name: "dpo" });
  await appendRun(path, { ...exampleRun, name: "full" });
  expect((await readMetrics(path)).runs).toEqual([
    { ...plain, ...defaults },
    { ...plain, ...defaults, name: "dpo" },
    { ...exampleRun, name: "full" },
  ]);
  await expect(appendRun(path, { ...exampleRun, config_hash: "pe128:other" })).rejects.toThrow(
    'of the run "sft" in it (config_hash: pe128:suite → pe128:other)',
  );
});

it.each([
  ["[]", ": got [], expected an object with schema_version and runs"],
  ['{"runs": []}', ": schema_version: got undefined, expected 1"],
  ['{"schema_version": 1, "runs": {}}', ": runs: got {}, expected an array"],
  ['{"schema_version": 1, "runs": [3]}', ": runs[0]: got 3, expected an object"],
  [{ extras: [] }, ": runs[0].extras: got [], expected an object"],
  [{ metrics: null }, ": runs[0].metrics: got null, expected an object"],
  [{ metrics: { acc: 1 } }, ': runs[0].metrics.acc: got 1, expected a key as "task/metric,filter"'],
  [{ ci95: { "a/acc,none": [1, "2"] } }, ': runs[0].ci95.a/acc,none[1]: got "2", expected a finite number'],
  [{ ci95: { "a/acc,none": [1] } }, ": runs[0].ci95.a/acc,none: got [1], expected [low, high]"],
  [{ n: { "a/acc,none": -1 } }, ": runs[0].n.a/acc,none: got -1, expected an integer of 0 or more"],
])("names the invalid field of %j", async (given, says) => {
  const text =
    typeof given === "string"
      ? given
      : JSON.stringify({ schema_version: 1, runs: [{ ...exampleRun, ...given }] });
  await writeFile(path, text);
  await expect(readMetrics(path)).rejects.toThrow(`${path}${says}`);
});

it("accepts runs of one suite only, and lists how another suite differs", async () => {
  await appendRun(path, exampleRun);
  const other = {
    ...exampleRun,
    config_hash: "pe128:other",
    suite: { tasks: { mmlu: { shots: 5, limit: 10 } } },
  };
  await expect(appendRun(path, other)).rejects.toThrow("(tasks.mmlu.limit: 1000 → 10)");
  expect(await namesIn()).toEqual(["sft"]);
});

it("keeps a valid file when the process crashes at any file operation", async () => {
  await appendRun(path, exampleRun);
  const before = await readFile(path, "utf8");
  for (let at = 1; at <= 12; at++) {
    const dying = faultyFiles(({ count }) => (count === at ? "die" : "none"));
    await appendRun(path, { ...exampleRun, name: "dpo" }, dying).catch(() => undefined);
    expect([["sft"], ["sft", "dpo"]]).toContainEqual(await namesIn());
    await appendRun(path, { ...exampleRun, name: "dpo" });
    expect(await namesIn()).toEqual(["sft", "dpo"]);
    expect(await readdir(folder)).toEqual(["metrics.json"]);
    await writeFile(path, before);
  }
});

it("leaves no drafts when processes crash while they take over a dead process's lock", async () => {
  const dieAt = async (operation: number) => {
    const dying = faultyFiles(({ count }) => (count === operation ? "die" : "none"));
    await appendRun(path, exampleRun, dying).catch(() => undefined);
  };
  for (let second = 1; second <= 24; second++) {
    await dieAt(8); // with the lock in hand
    expect(await readdir(folder)).toContain(".metrics.lock");
    await dieAt(second);
    await appendRun(path, exampleRun);
    expect(await readdir(folder), `second death at ${second}`).toEqual(["metrics.json"]);
    await rm(path);
  }
});
