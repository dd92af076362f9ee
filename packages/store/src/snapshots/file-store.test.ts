import fc from "fast-check";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { exampleSnapshot, storeConformance } from "@periodic-eval/testing";
import { faultyFiles, type FileOperation } from "../../../testing/src/faulty-files.test-data.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles } from "../files/file-system.ts";
import { readRun } from "./read-run.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let runDir: string;
beforeEach(() => void (runDir = temporaryFolder()));

const at = (...parts: string[]) => join(runDir, "periodic_eval", ...parts);
const rows = [{ id: "q1" }, { id: "q2" }];
const quiet = { onWarning: () => undefined };

for (const layout of ["nested", "flat"] as const) {
  describe(`conformance, ${layout}`, () => {
    for (const check of storeConformance(() => fileStore(runDir, { layout }))) it(check.name, check.run);
  });
}

it("writes rows of several pieces as one file with one hash", async () => {
  const many = Array.from({ length: 9000 }, (_, at) => ({ id: `ü${at}` }));
  const store = fileStore(runDir);
  await store.put(exampleSnapshot({ step: 1 }), many);
  expect(await store.rows({ phase: "train", id: "capability", step: 1 })).toEqual(many);
  await store.close!();
  const text = await readFile(at("train", "capability_step_1.samples.jsonl"), "utf8");
  expect(text).toBe(many.map((row) => `${JSON.stringify(row)}\n`).join(""));
  expect((await readRun(runDir)).problems).toEqual([]);
});

it("reads no other snapshot when it writes one", async () => {
  let reads: string[] = [];
  const fs = { ...nodeFiles, read: (path: string) => (reads.push(path), nodeFiles.read(path)) };
  const store = fileStore(runDir, { fs });
  for (let step = 0; step < 5; step++) await store.put(exampleSnapshot({ step }), rows);
  reads = [];
  await store.put(exampleSnapshot({ step: 5 }), rows);
  expect(await store.get({ phase: "train", id: "capability", step: 9 })).toBeNull();
  expect(reads.filter((path) => /step_[0-4]\.json$/.test(path))).toEqual([]);
  await store.close!();
});

describe("a snapshot that is superseded after its write failed", () => {
  const key = { phase: "train", id: "capability", step: 1 };
  /** Writes mark 1 if `hasEarlier`, then mark 2 with a failing operation, and supersedes. Returns what a new process finds. */
  async function supersedeAfter(hasEarlier: boolean, isFaulty: (operation: FileOperation) => boolean) {
    let isSecond = false;
    const fs = faultyFiles((operation) => (isSecond && isFaulty(operation) ? { errno: "EIO" } : "none"));
    const store = fileStore(runDir, { fs, ...quiet });
    if (hasEarlier) await store.put(exampleSnapshot({ step: 1, mark: 1 }), rows);
    isSecond = true;
    await expect(store.put(exampleSnapshot({ step: 1, mark: 2 }), rows)).rejects.toMatchObject({
      code: "store",
    });
    isSecond = false;
    await store.supersede(key, "a test");
    await store.close!();
    const next = fileStore(runDir, quiet);
    await next.open!();
    const found = await next.get(key);
    await next.close!();
    return { found, problems: (await readRun(runDir)).problems };
  }

  it("does not come back when the next session completes interrupted writes", async () => {
    const isFaulty = ({ name, path }: FileOperation) => name === "rename" && path.endsWith("step_1.json");
    expect(await supersedeAfter(false, isFaulty)).toEqual({ found: null, problems: [] });
  });

  it("is not reported as lost if the index named the snapshot before it", async () => {
    let renamed = 0;
    const isFaulty = ({ name, path }: FileOperation) => {
      if (name === "rename" && path.endsWith("step_1.json")) renamed = 1;
      return name === "syncFolder" && renamed === 1;
    };
    expect(await supersedeAfter(true, isFaulty)).toEqual({ found: null, problems: [] });
  });
});

describe("layout", () => {
  it("writes a folder per phase, the rows in the same folder and an index line in the nested layout", async () => {
    const store = fileStore(runDir);
    await store.put(exampleSnapshot({ phase: "em", step: 20 }), rows);
    await store.put(exampleSnapshot({ phase: "em", step: 40 }), []);
    await store.close!();
    expect((await readdir(at())).sort()).toEqual(["em", "index.jsonl"]);
    expect((await readdir(at("em"))).sort()).toEqual([
      "capability_step_20.json",
      "capability_step_20.samples.jsonl",
      "capability_step_40.json",
    ]);
    expect(await readFile(at("em", "capability_step_20.samples.jsonl"), "utf8")).toBe(
      '{"id":"q1"}\n{"id":"q2"}\n',
    );
    const lines = (await readFile(at("index.jsonl"), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ file, step, value }) => [file, step, value])).toEqual([
      ["em/capability_step_20.json", 20, 0.5],
      ["em/capability_step_40.json", 40, 0.5],
    ]);
  });

  it("removes the file of rows when a snapshot without rows replaces one with rows", async () => {
    const store = fileStore(runDir);
    await store.put(exampleSnapshot(), rows);
    await store.put(exampleSnapshot({ status: "failed" }), []);
    expect(await readdir(at("train"))).toEqual(["capability_step_0.json"]);
    await store.close!();
  });

  it("writes directly to periodic_eval in the flat layout and adds the phase to a name that is taken", async () => {
    const store = fileStore(runDir, { layout: "flat" });
    await store.put(exampleSnapshot({ phase: "coupling" }), rows);
    await store.put(exampleSnapshot({ phase: "em", run_step: 100 }), []);
    expect((await readdir(at())).filter((name) => name.endsWith("json")).sort()).toEqual([
      "capability_step_0.em.json",
      "capability_step_0.json",
    ]);
    await store.close!();
  });

  it("finds a snapshot by its content, whatever its file is called", async () => {
    const store = fileStore(runDir);
    await store.put(exampleSnapshot({ phase: "em" }), []);
    await mkdir(at("elsewhere"));
    await rename(at("em", "capability_step_0.json"), at("elsewhere", "x_step_9.json"));
    expect((await store.get({ phase: "em", id: "capability", step: 0 }))?.phase).toBe("em");
    await store.put(exampleSnapshot({ phase: "em", status: "failed" }), []);
    expect((await store.list()).map(({ status }) => status)).toEqual(["failed"]);
    await store.close!();
  });

  it("replaces a snapshot that was written in the other layout", async () => {
    const first = fileStore(runDir, { layout: "flat" });
    await first.put(exampleSnapshot(), []);
    await first.close!();
    const second = fileStore(runDir, { layout: "nested" });
    await second.put(exampleSnapshot({ status: "failed" }), []);
    expect((await second.list()).map(({ status }) => status)).toEqual(["failed"]);
    await second.close!();
  });

  it.each(["superseded", "Superseded", "index.jsonl"])(
    "refuses the phase %s, whose name the store uses itself",
    async (phase) => {
      await expect(fileStore(runDir).put(exampleSnapshot({ phase }), [])).rejects.toThrow("Rename the phase");
    },
  );

  it("reads back every phase, id and step, whatever the other names are", async () => {
    const word = fc.stringMatching(/^[A-Za-z0-9](step|_|\.|json|samples|[0-9]){0,4}$/);
    // On some file systems names that differ only by case are one file.
    const key = fc.record({
      phase: word.map((w) => `p${w.toLowerCase()}`),
      id: word.map((w) => w.toLowerCase()),
      step: fc.nat(30),
    });
    const keys = fc.uniqueArray(key, { selector: (k) => JSON.stringify(k), minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(keys, fc.constantFrom("nested" as const, "flat" as const), async (some, layout) => {
        const folder = await mkdtemp(join(runDir, "case-"));
        const store = fileStore(folder, { layout });
        for (const [n, k] of some.entries())
          await store.put(exampleSnapshot({ ...k, run_step: n + k.step }), [{ id: `${n}` }]);
        for (const [n, k] of some.entries()) expect(await store.rows(k)).toEqual([{ id: `${n}` }]);
        expect(await store.list()).toHaveLength(some.length);
        await store.close!();
      }),
      { numRuns: 25 },
    );
  });
});

describe("index", () => {
  async function twoSnapshots(): Promise<string> {
    const store = fileStore(runDir);
    await store.put(exampleSnapshot(), rows);
    await store.put(exampleSnapshot({ step: 20 }), rows);
    await store.close!();
    return readFile(at("index.jsonl"), "utf8");
  }

  it.each([
    ["deleted", async () => rm(at("index.jsonl"))],
    [
      "cut in its last line",
      async () => writeFile(at("index.jsonl"), (await readFile(at("index.jsonl"), "utf8")).slice(0, -9)),
    ],
    ["emptied", async () => writeFile(at("index.jsonl"), "")],
    ["overwritten with other text", async () => writeFile(at("index.jsonl"), "nonsense\n")],
  ])("is rebuilt at the next opening when it was %s", async (_, damage) => {
    const before = await twoSnapshots();
    await damage();
    const store = fileStore(runDir);
    await store.open!();
    expect(await readFile(at("index.jsonl"), "utf8")).toBe(before);
    await store.close!();
  });

  it("is complete after the next snapshot when it was deleted during the run", async () => {
    await twoSnapshots();
    const store = fileStore(runDir);
    await store.open!();
    await rm(at("index.jsonl"));
    await store.put(exampleSnapshot({ step: 40 }), []);
    expect((await readFile(at("index.jsonl"), "utf8")).trimEnd().split("\n")).toHaveLength(3);
    await store.close!();
  });

  it("has the new status of a replaced snapshot and no line for a superseded one", async () => {
    await twoSnapshots();
    const store = fileStore(runDir);
    await store.put(exampleSnapshot({ status: "failed" }), []);
    await store.supersede({ phase: "train", id: "capability", step: 20 }, "a test");
    const lines = (await readFile(at("index.jsonl"), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ step, status }) => [step, status])).toEqual([[0, "failed"]]);
    await store.close!();
  });
});

describe("superseded", () => {
  it("keeps the snapshot under a number, with its rows and the reason", async () => {
    const store = fileStore(runDir);
    for (const why of ["weights differ", "data changed"]) {
      await store.put(exampleSnapshot({ phase: "em", step: 20 }), rows);
      await store.supersede({ phase: "em", id: "capability", step: 20 }, why);
    }
    await store.close!();
    expect((await readdir(at("superseded", "em"))).sort()).toEqual([
      "capability_step_20.1.json",
      "capability_step_20.1.samples.jsonl",
      "capability_step_20.2.json",
      "capability_step_20.2.samples.jsonl",
    ]);
    expect(await readdir(at("em"))).toEqual([]);
    const key = { phase: "em", id: "capability", step: 20 };
    expect((await readRun(runDir)).superseded).toEqual([
      { file: "em/capability_step_20.1.json", key, why: "weights differ" },
      { file: "em/capability_step_20.2.json", key, why: "data changed" },
    ]);
  });
});

describe("opening after a crash", () => {
  it("removes temporary files with a warning", async () => {
    await mkdir(at("em"), { recursive: true });
    await writeFile(at("em", ".capability_step_20.json.4242.1.tmp"), "{");
    const warnings: string[] = [];
    const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
    await store.open!();
    expect(await readdir(at("em"))).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining(".capability_step_20.json.4242.1.tmp")]);
    await store.close!();
  });

  it.each([
    ["cut off", '{"schema_version": 1, "step'],
    ["empty", ""],
    ["full of zero bytes, as some file systems leave it", "\0".repeat(64)],
    ["not a snapshot", '{"schema_version": 1}'],
  ])(
    "moves a snapshot file that is %s to superseded/ with a warning, and accepts a new one",
    async (_, text) => {
      const before = fileStore(runDir);
      await before.put(exampleSnapshot(), []);
      await before.put(exampleSnapshot({ step: 20 }), rows);
      await before.close!();
      await writeFile(at("train", "capability_step_20.json"), text);
      const warnings: string[] = [];
      const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
      await store.open!();
      expect(warnings).toEqual([
        expect.stringMatching(/^moved train.capability_step_20\.json to superseded\//),
      ]);
      expect((await store.list()).map(({ step }) => step)).toEqual([0]);
      expect(await readFile(at("superseded", "train", "capability_step_20.1.damaged.json"), "utf8")).toBe(
        text,
      );
      await store.put(exampleSnapshot({ step: 20 }), rows);
      expect((await store.list()).map(({ step }) => step)).toEqual([0, 20]);
      await store.close!();
    },
  );

  it("ignores a copy of a snapshot under another name", async () => {
    const before = fileStore(runDir);
    await before.put(exampleSnapshot(), []);
    await before.close!();
    await writeFile(at("train", "copy_step_0.json"), await readFile(at("train", "capability_step_0.json")));
    const store = fileStore(runDir);
    await store.open!();
    expect(await store.list()).toHaveLength(1);
    await store.close!();
  });

  it("throws an error with file and line for damaged rows", async () => {
    const store = fileStore(runDir, quiet);
    await store.put(exampleSnapshot(), rows);
    await writeFile(at("train", "capability_step_0.samples.jsonl"), '{"id":"q1"}\n{"id"\n');
    const error = await store.rows({ phase: "train", id: "capability", step: 0 }).catch((e: unknown) => e);
    expect(PeriodicEvalError.is(error, "store") && error.where).toMatch(
      /capability_step_0\.samples\.jsonl:2$/,
    );
    await store.close!();
  });
});

describe("a disk that fails", () => {
  const key = { phase: "train", id: "capability", step: 20 };

  it("continues in the same session once there is space again", async () => {
    let isFull = true;
    const fs = faultyFiles(({ name }) => (isFull && name === "write" ? { errno: "ENOSPC" } : "none"));
    const store = fileStore(runDir, { fs });
    const put = () => store.put(exampleSnapshot({ step: 20 }), rows);
    const failure: unknown = await put().catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "store",
      where: expect.stringContaining(runDir),
      got: "ENOSPC (no space left on the device)",
      fix: expect.stringContaining("Free space"),
    });
    isFull = false;
    await put();
    expect(await store.rows(key)).toEqual(rows);
    await store.close!();
  });

  it.each(["nested", "flat"] as const)(
    "writes a snapshot again in its place if only the sync after its rename failed: %s",
    async (layout) => {
      let isBroken = true;
      const fs = faultyFiles(({ name }) => (isBroken && name === "syncFolder" ? { errno: "EIO" } : "none"));
      const store = fileStore(runDir, { fs, layout, ...quiet });
      await expect(store.put(exampleSnapshot({ step: 20, note: "old" }), [])).rejects.toMatchObject({
        code: "store",
      });
      isBroken = false;
      await store.put(exampleSnapshot({ step: 20, note: "new" }), rows);
      await store.close!();
      const { phases, problems } = await readRun(runDir);
      expect(problems).toEqual([]);
      expect(phases.flatMap(({ snapshots }) => snapshots)).toMatchObject([{ step: 20, note: "new" }]);
    },
  );
});
