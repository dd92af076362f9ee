import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Snapshot, type SnapshotStore, PeriodicEvalError } from "@periodic-eval/contracts";
import { exampleSnapshot, faultyFiles, type Fault, type FileOperation } from "@periodic-eval/testing";
import { fileStore } from "../snapshots/file-store.ts";
import { nodeFiles, type FileSystem } from "./file-system.ts";
import { readRun } from "../snapshots/read-run.ts";
import { theDead, theLiving } from "../../../testing/src/lock-owners.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const key = { phase: "train", id: "capability", step: 20 };
const oldRows = [
  { id: "q1", say: "old" },
  { id: "q2", say: "old" },
];
const newRows = [
  { id: "q1", say: "new" },
  { id: "q2", say: "new" },
  { id: "q3", say: "new" },
];
const older = exampleSnapshot({ step: 20, status: "grading", note: "old" });
const newer = exampleSnapshot({ step: 20, status: "complete", note: "new" });

/** Files without syncs: a write survives the death of its process anyway, and these tests do not stop the machine. */
const unsynced: FileSystem = {
  ...nodeFiles,
  syncFolder: async () => undefined,
  open: async (path, mode) => ({ ...(await nodeFiles.open(path, mode)), sync: async () => undefined }),
};

const quiet = () => undefined;

async function freshRun(prepare: (store: SnapshotStore) => Promise<void>): Promise<string> {
  const runDir = await mkdtemp(join(folder, "run-"));
  const store = fileStore(runDir, { owner: theLiving, fs: unsynced });
  await store.put(exampleSnapshot(), oldRows);
  await prepare(store);
  await store.close!();
  return runDir;
}

interface Scenario {
  readonly name: string;
  readonly prepare: (store: SnapshotStore) => Promise<void>;
  readonly act: (store: SnapshotStore) => Promise<void>;
  /** Notes that the snapshot of `key` may have afterwards; null stands for "no snapshot". */
  readonly allowed: readonly (string | null)[];
}

const scenarios: readonly Scenario[] = [
  {
    name: "a first put",
    prepare: async () => undefined,
    act: (store) => store.put(newer, newRows),
    allowed: [null, "new"],
  },
  {
    name: "a put that replaces",
    prepare: (store) => store.put(older, oldRows),
    act: (store) => store.put(newer, newRows),
    allowed: ["old", "new"],
  },
  {
    name: "a put without rows that replaces",
    prepare: (store) => store.put(older, oldRows),
    act: (store) => store.put(newer, []),
    allowed: ["old", "new"],
  },
  {
    name: "superseding",
    prepare: (store) => store.put(older, oldRows),
    act: (store) => store.supersede(key, "a test"),
    allowed: ["old", null],
  },
];

/** Runs `act` with a fault at the k-th change of the disk, for k = 1, 2, … until `act` makes fewer than k changes. */
async function atEveryChange(
  scenario: Scenario,
  fault: (operation: FileOperation) => Fault,
  check: (runDir: string, failure: unknown, operation: FileOperation) => Promise<void>,
): Promise<number> {
  for (let k = 1; ; k++) {
    const runDir = await freshRun(scenario.prepare);
    let met: FileOperation | null = null;
    const fs = faultyFiles((operation) => {
      if (operation.count !== k) return "none";
      met = operation;
      return fault(operation);
    }, unsynced);
    const store = fileStore(runDir, { fs, owner: theDead, onWarning: quiet });
    const failure = await scenario.act(store).then(
      () => null,
      (error: unknown) => error,
    );
    await store.close!().catch(quiet);
    if (met === null) return k - 1;
    await check(runDir, failure, met);
  }
}

async function expectWhole(runDir: string, scenario: Scenario): Promise<void> {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  const snapshots = phases.flatMap((phase) => phase.snapshots);
  const reader = fileStore(runDir);
  expect(snapshots[0]).toMatchObject({ step: 0, status: "complete" });
  expect(await reader.rows({ ...key, step: 0 })).toEqual(oldRows);
  const found = snapshots.find(({ step }) => step === 20) as (Snapshot & { note: string }) | undefined;
  expect(scenario.allowed).toContain(found?.note ?? null);
  const rows = JSON.stringify(await reader.rows(key));
  const aside = (await readRun(runDir)).superseded;
  if (found === undefined) {
    expect(rows).toBe("[]");
    // A snapshot that is not in its place is in `superseded/`, with all its rows.
    if (scenario.allowed.includes("old")) {
      expect(aside).toEqual([{ file: "train/capability_step_20.1.json", key, why: "a test" }]);
      const kept = await readFile(
        join(runDir, "periodic_eval/superseded/train/capability_step_20.1.samples.jsonl"),
        "utf8",
      );
      expect(kept).toBe(oldRows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    }
  } else {
    const whole = [oldRows, newRows].map((all) => JSON.stringify(all));
    if (found.samples !== null) expect(whole).toContain(rows);
    // The new snapshot never has the old rows.
    if (found.note === "new") expect(rows).toBe(found.samples === null ? "[]" : JSON.stringify(newRows));
  }
}

describe("a process that dies at any change of the disk", () => {
  it.each(scenarios)(
    "$name: leaves the old or the new snapshot, and a second session repairs the rest",
    async (scenario) => {
      const changes = await atEveryChange(
        scenario,
        () => "die",
        async (runDir) => {
          await expectWhole(runDir, scenario);
          const after = fileStore(runDir, { owner: theLiving, fs: unsynced, onWarning: quiet });
          await after.open!();
          await expectWhole(runDir, scenario);
          await scenario.act(after);
          await after.close!();
          await expectWhole(runDir, scenario);
          const left = await readdir(join(runDir, "periodic_eval"), { recursive: true });
          expect(left.filter((name) => name.includes(".tmp") || name.includes(".lock"))).toEqual([]);
          const lines = (await readFile(join(runDir, "periodic_eval/index.jsonl"), "utf8"))
            .trimEnd()
            .split("\n");
          expect(lines.map((line) => JSON.parse(line).step)).toEqual(
            scenario.allowed.at(-1) === null ? [0] : [0, 20],
          );
        },
      );
      expect(changes).toBeGreaterThan(15); // lock, rows, snapshot and index all had their fault
    },
  );
});

describe("a disk that fails", () => {
  it.each(["ENOSPC", "EACCES"])(
    "%s at any change: gives an error with path and fix, or none, and leaves whole snapshots",
    async (errno) => {
      for (const scenario of scenarios) {
        await atEveryChange(
          scenario,
          () => ({ errno }),
          async (runDir, failure, operation) => {
            // These failures break no promise: an unsynced folder, a temporary file that stays.
            const mayPass =
              operation.name === "syncFolder" || operation.name === "remove" || operation.name === "close";
            if (failure !== null || !mayPass) {
              if (!PeriodicEvalError.is(failure, "store"))
                throw new Error(`${operation.name}: ${String(failure)}`);
              expect(failure.got).toContain(errno);
              expect(failure.where).toContain(runDir);
              expect(failure.fix).toMatch(errno === "ENOSPC" ? /Free space/ : /write access/);
            }
            await expectWhole(runDir, scenario);
            const left = await readdir(join(runDir, "periodic_eval"), { recursive: true });
            if (operation.name !== "remove") expect(left.filter((name) => name.includes(".tmp"))).toEqual([]);
          },
        );
      }
    },
  );

  it("continues in the same session once there is space again", async () => {
    const runDir = await freshRun(async () => undefined);
    let isFull = true;
    const fs = faultyFiles(({ name }) => (isFull && name === "write" ? { errno: "ENOSPC" } : "none"));
    const store = fileStore(runDir, { fs, owner: theDead });
    await expect(store.put(newer, newRows)).rejects.toThrow("no space left on the device");
    isFull = false;
    await store.put(newer, newRows);
    expect(await store.rows(key)).toEqual(newRows);
    await store.close!();
  });

  it.each(["nested", "flat"] as const)(
    "writes a snapshot again in its place if only the sync after its rename failed: %s",
    async (layout) => {
      const runDir = await mkdtemp(join(folder, "run-"));
      let isBroken = true;
      const fs = faultyFiles(
        ({ name }) => (isBroken && name === "syncFolder" ? { errno: "EIO" } : "none"),
        unsynced,
      );
      const store = fileStore(runDir, { fs, owner: theDead, layout, onWarning: quiet });
      await expect(store.put(older, [])).rejects.toMatchObject({ code: "store" });
      isBroken = false;
      await store.put(newer, newRows);
      await store.close!();
      const { phases, problems } = await readRun(runDir);
      expect(problems).toEqual([]);
      expect(phases.flatMap(({ snapshots }) => snapshots)).toMatchObject([{ step: 20, note: "new" }]);
    },
  );
});
