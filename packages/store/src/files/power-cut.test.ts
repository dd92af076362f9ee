import { mkdtempSync, rmSync } from "node:fs";
import type * as files from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Snapshot, SnapshotStore } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import { cuts, powerCutDisk, type Recorder } from "../../../testing/src/power-cut.test-data.ts";
import { theDead, theLiving } from "../../../testing/src/lock-owners.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { fileStore } from "../snapshots/file-store.ts";
import { readRun } from "../snapshots/read-run.ts";

const recorder = vi.hoisted((): Recorder => ({ disk: null, afterChange: async () => {} }));
vi.mock("node:fs/promises", async (importOriginal) => {
  const { recordedFiles } = await import("../../../testing/src/power-cut.test-data.ts");
  return recordedFiles(await importOriginal<typeof files>(), recorder);
});

const folder = temporaryFolder(afterAll);
const isFull = process.env["PERIODIC_EVAL_FULL"] !== undefined;
const quiet = () => undefined;
const open = (runDir: string) => fileStore(runDir, { owner: theDead, onWarning: quiet });

const key = { phase: "train", id: "capability", step: 20 };
const rowsOf = (note: string) =>
  ["q1", "q2", ...(note === "new" ? ["q3"] : [])].map((id) => ({ id, say: note }));
const put = (store: SnapshotStore, note: string, status: Snapshot["status"] = "complete") =>
  store.put(exampleSnapshot({ step: 20, status, note }), rowsOf(note));

interface Scenario {
  readonly name: string;
  readonly prepare?: (store: SnapshotStore) => Promise<void>;
  readonly act: (store: SnapshotStore) => Promise<void>;
  /** Notes of the snapshot at step 20 before and after; null stands for "no snapshot". */
  readonly before: string | null;
  readonly after: string | null;
}

const scenarios: readonly Scenario[] = [
  { name: "a first put", act: (store) => put(store, "new"), before: null, after: "new" },
  {
    name: "a put that replaces",
    prepare: (store) => put(store, "old", "grading"),
    act: (store) => put(store, "new"),
    before: "old",
    after: "new",
  },
  {
    name: "superseding",
    prepare: (store) => put(store, "old"),
    act: (store) => store.supersede(key, "a test"),
    before: "old",
    after: null,
  },
];

/** Repairs what a cut left, and checks that the snapshot of step 20 is whole and one of `allowed`. */
async function expectWhole(
  runDir: string,
  allowed: readonly (string | null)[],
  place: string,
): Promise<void> {
  const warnings: string[] = [];
  const store = fileStore(runDir, { owner: theLiving, onWarning: (message) => void warnings.push(message) });
  await store.open!();
  const found = (await store.get(key)) as (Snapshot & { note: string }) | null;
  expect(allowed, place).toContain(found?.note ?? null);
  const rows = await store.rows(key);
  if (found === null) expect(rows, place).toEqual([]);
  // A snapshot that is to be replaced may already have the new rows.
  else expect([rowsOf(found.note), rowsOf("new")], place).toContainEqual(rows);
  if (found?.note === "new") expect(rows, place).toEqual(rowsOf("new"));
  const damaged = warnings.filter((message) => message.startsWith("moved "));
  expect(damaged, place).toEqual([]);
  await put(store, "again");
  expect(await store.rows(key), place).toEqual(rowsOf("again"));
  await store.close!();
  expect((await readRun(runDir)).problems, place).toEqual([]);
}

describe("a power cut that loses what was not synced", () => {
  it.each(scenarios)(
    "$name: leaves the old snapshot or the new one at every point, whole",
    async (scenario) => {
      const run = join(mkdtempSync(join(folder, "disk-")), "runs/one");
      const disk = powerCutDisk(join(run, "../.."));
      // The process that runs did not create this folder: all in it is durable, and the run's folder is still to be created.
      if (scenario.prepare) {
        const store = open(run);
        await scenario.prepare(store);
        await store.close!();
        disk.settle();
      }
      const ways = cuts(isFull ? 20 : 1);
      let point = 0;
      const cutAll = async (allowed: readonly (string | null)[], some = ways) => {
        recorder.disk = null;
        for (const way of some) {
          const left = mkdtempSync(join(folder, "left-"));
          disk.cut(way, left);
          await expectWhole(join(left, "runs/one"), allowed, `${way.name}, point ${point}`);
          rmSync(left, { recursive: true });
        }
        recorder.disk = disk;
      };
      onTestFinished(() => void Object.assign(recorder, { disk: null }));
      recorder.disk = disk;
      recorder.afterChange = async () => {
        point += 1;
        if (!isFull && point % 3 !== 0) return;
        await cutAll([scenario.before, scenario.after], isFull ? ways : [ways[point % ways.length]!]);
      };
      const store = open(run);
      await scenario.act(store);
      recorder.afterChange = async () => {};
      // The call has returned, so its effect survives every cut.
      await cutAll([scenario.after]);
      recorder.disk = null;
      await store.close!();
      expect(point).toBeGreaterThan(15);
    },
  );
});
