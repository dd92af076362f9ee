import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles, type FileReader, type FileSystem } from "../files/file-system.ts";
import { readRun } from "./read-run.ts";

let runDir: string;
let otherRun: string;
const at = (...parts: string[]) => join(runDir, "periodic_eval", ...parts);
const inOther = (...parts: string[]) => join(otherRun, "periodic_eval", ...parts);
const rows = Array.from({ length: 8 }, (_, item) => ({ id: `q${item}`, correct: item % 3 > 0 }));
const snapshot = "em/capability_step_0.json";
const quiet = { onWarning: () => undefined };

async function measuredRun(when: string): Promise<string> {
  const folder = temporaryFolder();
  const store = fileStore(folder);
  for (const [before, phase] of ["coupling", "em"].entries())
    for (const step of [0, 20]) {
      const run_step = 20 * before + step;
      await store.put(exampleSnapshot({ phase, step, run_step, crossed: ["start"], created_at: when }), rows);
    }
  await store.close!();
  return folder;
}

beforeEach(async () => {
  [runDir, otherRun] = [
    await measuredRun("2026-01-01T00:00:00.000Z"),
    await measuredRun("2026-02-02T00:00:00.000Z"),
  ];
});

const edit = async (name: string, change: (text: string) => string) =>
  writeFile(at(name), change(await readFile(at(name), "utf8")));
it.each(["capability_step_0.bak.json", "a_step_0.json"])(
  "reads the original, not a copy named %s that comes before it",
  async (name) => {
    await copyFile(inOther(snapshot), at("em", name));
    const { problems, phases } = await readRun(runDir);
    expect(problems).toEqual([]);
    expect(new Set(phases.map(({ snapshots }) => snapshots[0]!.created_at))).toEqual(
      new Set(["2026-01-01T00:00:00.000Z"]),
    );
  },
);

it("names a snapshot that is nested too deeply to verify", async () => {
  const deep = "[".repeat(20_000) + "]".repeat(20_000);
  await edit(snapshot, (text) => text.replace("{", `{"x":${deep},`));
  expect((await readRun(runDir)).problems).toMatchObject([{ kind: "unreadable", invalid: true }]);
});

// Windows has no such names.
it.skipIf(process.platform === "win32")(
  "ignores files and folders with line breaks in their names",
  async () => {
    const [file, folder] = ["x\nem/capability_step_0.json", "x\nem"].map((name) => name.replaceAll("/", "_"));
    await mkdir(at(folder!));
    await copyFile(at(snapshot), at(file!));
    await copyFile(at(snapshot), at(folder!, "capability_step_0.json"));
    expect((await readRun(runDir)).problems).toEqual([]);
  },
);

it("reads a list of superseded snapshots with lines of other types", async () => {
  await mkdir(at("superseded/em"), { recursive: true });
  const lines = ["null", "5", '{"file":"em/x.json","key":"em","why":{}}', '{"file":"em/x.json","key":5}'];
  await writeFile(at("superseded/index.jsonl"), lines.map((line) => `${line}\n`).join(""));
  await writeFile(at("superseded/em/x.json"), "null");
  expect((await readRun(runDir)).superseded).toEqual([{ file: "em/x.json", key: null, why: null }]);
});

/** File operations that all fail from the n-th write on, as if the process had been killed there. */
function dyingAt(count: number): { readonly fs: FileSystem; isDead(): boolean } {
  let left = count;
  const mortal =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      left-- > 0 ? work(...args) : Promise.reject(new Error("killed"));
  const { rename, remove, truncate, open, syncFolder } = nodeFiles;
  return {
    isDead: () => left < 0,
    fs: {
      ...nodeFiles,
      rename: mortal(rename),
      remove: mortal(remove),
      truncate: mortal(truncate),
      open: mortal(open),
      syncFolder: mortal(syncFolder),
    },
  };
}

it.each([rows, []].map((now) => [now.length, now] as const))(
  "raises no alarm after a kill at any write of a replacement with %i rows",
  async (_, now) => {
    const lockPath = at(".lock");
    for (let count = 2, isOver = false; !isOver; count++) {
      const { fs, isDead } = dyingAt(count);
      const store = fileStore(runDir, { ...quiet, fs });
      await store
        .put(exampleSnapshot({ phase: "em", pct: count, crossed: ["start"] }), now)
        .catch(() => undefined);
      isOver = !isDead();
      await store.close!().catch(() => undefined);
      await rm(lockPath, { force: true });
      expect((await readRun(runDir)).problems, `killed at ${count}`).toEqual([]);
      const next = fileStore(runDir, quiet);
      await next.open!();
      expect(await next.problems!(), `resumed after ${count}`).toEqual([]);
      await next.close!();
    }
  },
);

it("raises no alarm about a snapshot that a session replaces while it is read", async () => {
  const store = fileStore(runDir, quiet);
  await store.open!();
  let left = 3;
  const racing: FileReader = {
    list: nodeFiles.list,
    async read(path) {
      const text = await nodeFiles.read(path);
      if (left-- > 0) await store.put(exampleSnapshot({ phase: "em", pct: left, crossed: ["start"] }), rows);
      return text;
    },
  };
  expect((await readRun(runDir, racing)).problems).toEqual([]);
  await store.close!();
});

it("raises no alarm about a snapshot that a session supersedes while it is read", async () => {
  const store = fileStore(runDir, quiet);
  await store.open!();
  let reads = 0;
  const racing: FileReader = {
    list: nodeFiles.list,
    async read(path) {
      const text = await nodeFiles.read(path);
      if (path === at("em/capability_step_20.json") && reads++ === 0) {
        await store.supersede({ phase: "em", id: "capability", step: 20 }, "a test");
        await store.put(
          exampleSnapshot({ phase: "em", step: 30, created_at: "2027-01-01T00:00:00.000Z" }),
          rows,
        );
      }
      return text;
    },
  };
  expect((await readRun(runDir, racing)).problems).toEqual([]);
  await store.close!();
});
