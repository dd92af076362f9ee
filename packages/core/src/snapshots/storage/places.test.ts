import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { Layout } from "../../contracts/snapshot.ts";
import { lockText } from "../../testing/lock-file.test-data.ts";
import { exampleSnapshot } from "../../testing/example-snapshot.ts";
import { temporaryFolder } from "../../testing/temporary-folder.test-data.ts";
import { readEarlierRun } from "./earlier-run.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles } from "./file-system.ts";
import { readRun } from "./read-run.ts";

let runDir: string;
const at = (...parts: string[]) => join(runDir, "periodic_eval", ...parts);
const nameOf = (step: number) => `em/capability_step_${step}`;
const rowsOf = (step: number) => [0, 1, 2].map((item) => ({ id: `q${item}`, answer: `${step}` }));
const steps = [0, 10, 20, 30];

async function measuredRun(layout: Layout = "nested", created_at = "2026-01-01T00:00:00.000Z") {
  const folder = temporaryFolder();
  const store = fileStore(folder, { layout });
  for (const step of steps)
    await store.put(exampleSnapshot({ phase: "em", step, run_step: step, created_at }), rowsOf(step));
  await store.close!();
  return folder;
}

beforeEach(async () => void (runDir = await measuredRun()));

const endings = [".json", ".samples.jsonl"];
/** Renames files in a circle: each gets the name of the next. */
async function rotate(names: readonly string[], ofEach = endings): Promise<void> {
  for (const ending of ofEach) {
    await rename(at(names.at(-1)! + ending), at(`kept${ending}`));
    for (let one = names.length - 2; one >= 0; one--)
      await rename(at(names[one]! + ending), at(names[one + 1]! + ending));
    await rename(at(`kept${ending}`), at(names[0]! + ending));
  }
}
async function move(from: string, to: string, ofEach = endings): Promise<void> {
  for (const ending of ofEach) await rename(at(from + ending), at(to + ending));
}

/** Reads the run as a session does that resumes it, and returns the warnings. */
async function resume(): Promise<readonly string[]> {
  const warnings: string[] = [];
  const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
  await store.open!();
  await store.close!();
  return warnings;
}

async function expectRestored(kept = steps): Promise<void> {
  const { problems, phases } = await readRun(runDir);
  expect(problems.filter(({ kind }) => kind !== "missing")).toEqual([]);
  expect(phases[0]!.series[0]!.points.map(({ file }) => file)).toEqual(
    kept.map((step) => `${nameOf(step)}.json`),
  );
  const store = fileStore(runDir);
  for (const step of kept)
    expect(await store.rows({ phase: "em", id: "capability", step })).toEqual(rowsOf(step));
  const left = await readdir(at("em"));
  expect(left.sort()).toEqual(
    kept.flatMap((step) => endings.map((ending) => `capability_step_${step}${ending}`)),
  );
}

const misplaced = (name: string, step: number) => ({
  kind: "misplaced",
  file: `${name}.json`,
  key: { phase: "em", id: "capability", step },
  got: `the snapshot of em/capability/${step}`,
  expected: `that snapshot in ${nameOf(step)}.json`,
  effect: "it counts by its content, not by its name",
  invalid: false,
});

describe.each([
  [
    "two snapshots that were exchanged with their rows",
    () => rotate([nameOf(10), nameOf(20)]),
    [misplaced(nameOf(20), 10), misplaced(nameOf(10), 20)],
  ],
  [
    "a baseline that was exchanged with the last snapshot",
    () => rotate([nameOf(0), nameOf(30)]),
    [misplaced(nameOf(30), 0), misplaced(nameOf(0), 30)],
  ],
  [
    "three snapshots that were exchanged in a circle",
    () => rotate([nameOf(10), nameOf(20), nameOf(30)]),
    [misplaced(nameOf(20), 10), misplaced(nameOf(30), 20), misplaced(nameOf(10), 30)],
  ],
  [
    "a snapshot that was renamed with its rows to a step without a measurement",
    () => move(nameOf(10), nameOf(15)),
    [misplaced(nameOf(15), 10)],
  ],
  [
    "a snapshot that was renamed to a name of no measurement",
    () => move(nameOf(10), "em/accuracy_step_10.best"),
    [misplaced("em/accuracy_step_10.best", 10)],
  ],
  [
    "a snapshot in the folder of another phase",
    async () => (await mkdir(at("dpo")), move(nameOf(10), "dpo/capability_step_10")),
    [misplaced("dpo/capability_step_10", 10)],
  ],
  [
    "a snapshot in the place that it has in the flat layout",
    () => move(nameOf(10), "capability_step_10"),
    [misplaced("capability_step_10", 10)],
  ],
  [
    "a phase's folder that was renamed",
    () => rename(at("em"), at("em2")),
    steps.map((step) => misplaced(`em2/capability_step_${step}`, step)),
  ],
])("%s", (_, attack, expected) => {
  it("is named, read by its content, and renamed back by the next session", async () => {
    const before = (await readRun(runDir)).phases[0]!.snapshots;
    await attack();
    const { problems, phases } = await readRun(runDir);
    expect(problems).toMatchObject(expected);
    expect(phases[0]!.snapshots).toEqual(before);
    expect((await readEarlierRun(runDir)).problems).toMatchObject(expected);
    expect(await resume()).toHaveLength(expected.length);
    await expectRestored();
    expect(await resume()).toEqual([]);
  });

  it("is named without an index too, unless its name is one of the flat layout", async () => {
    await attack();
    await rm(at("index.jsonl"));
    const flat = expected.filter(({ file }) => !file.includes("/"));
    const named = (await readRun(runDir)).problems.filter(({ kind }) => kind === "misplaced");
    expect(named).toHaveLength(expected.length - flat.length);
  });
});

it("finds the rows of exchanged snapshots whose rows stayed in their place", async () => {
  await rotate([nameOf(10), nameOf(20)], [".json"]);
  const { problems } = await readRun(runDir);
  expect(problems.map(({ kind, key }) => [kind, key!.step])).toEqual([
    ["misplaced", 10],
    ["misplaced", 20],
    ["rows", 10],
    ["rows", 20],
  ]);
  const store = fileStore(runDir, { onWarning: () => undefined });
  await store.open!();
  expect((await store.problems!()).map(({ kind }) => kind)).toEqual(["misplaced", "misplaced"]);
  await store.close!();
  await expectRestored();
});

it("names exchanged rows", async () => {
  await rotate([nameOf(10), nameOf(20)], [".samples.jsonl"]);
  expect((await readRun(runDir)).problems).toMatchObject([
    { kind: "rows", key: { step: 10 } },
    { kind: "rows", key: { step: 20 } },
  ]);
});

it("names a snapshot that took the name of another, and the lost one, and can measure that again", async () => {
  await move(nameOf(20), nameOf(10));
  expect((await readRun(runDir)).problems).toMatchObject([
    misplaced(nameOf(10), 20),
    { kind: "missing", file: `${nameOf(10)}.json`, key: { step: 10 } },
  ]);
  const store = fileStore(runDir, { onWarning: () => undefined });
  await store.put(exampleSnapshot({ phase: "em", step: 10 }), rowsOf(10));
  await store.close!();
  await expectRestored();
});

it("names a snapshot that was copied over another, and the lost one, and can measure that again", async () => {
  for (const ending of endings) await copyFile(at(nameOf(20) + ending), at(nameOf(10) + ending));
  expect((await readRun(runDir)).problems).toMatchObject([
    { kind: "duplicate", file: `${nameOf(10)}.json`, key: { step: 20 } },
    { kind: "missing", file: `${nameOf(10)}.json`, key: { step: 10 } },
  ]);
  const store = fileStore(runDir, { onWarning: () => undefined });
  await store.put(exampleSnapshot({ phase: "em", step: 10 }), rowsOf(10));
  await store.close!();
  await expectRestored();
});

it("makes room for a misplaced snapshot whose place has a copy of another", async () => {
  await move(nameOf(20), nameOf(10));
  for (const ending of endings) await copyFile(at(nameOf(0) + ending), at(nameOf(20) + ending));
  expect((await readRun(runDir)).problems.map(({ kind }) => kind).sort()).toEqual([
    "duplicate",
    "misplaced",
    "missing",
  ]);
  await resume();
  await expectRestored([0, 20, 30]);
});

it("renames a snapshot back to where a copy of the rows of another is", async () => {
  await move(nameOf(20), nameOf(10));
  await copyFile(at(`${nameOf(0)}.samples.jsonl`), at(`${nameOf(20)}.samples.jsonl`));
  await resume();
  await expectRestored([0, 20, 30]);
});

it("renames a snapshot back once another has made room, in any order", async () => {
  await move(nameOf(20), "em/capability_step_10.moved");
  await move(nameOf(10), nameOf(20));
  await resume();
  await expectRestored();
});

it.each([
  ["without an index", ["coupling", "em"], 0],
  ["with an index of one of them", ["em", "coupling"], 1],
])("gives snapshots of two phases in the flat layout a name each, %s", async (_, phases, lines) => {
  runDir = temporaryFolder();
  const store = fileStore(runDir, { layout: "flat" });
  for (const phase of phases)
    await store.put(exampleSnapshot({ phase, step: 10, run_step: phase === "em" ? 40 : 10 }), rowsOf(10));
  await store.close!();
  const index = (await readFile(at("index.jsonl"), "utf8")).split("\n").slice(0, lines);
  await rm(at("index.jsonl"));
  if (lines > 0) await writeFile(at("index.jsonl"), `${index.join("\n")}\n`);
  await move("capability_step_10", "a_step_10");
  await move(`capability_step_10.${phases[1]}`, "b_step_10");
  await resume();
  expect((await readRun(runDir)).problems).toEqual([]);
});

it("leaves the name of a lost measurement free if a snapshot cannot be renamed back", async () => {
  // The rows of step 20 are in the place of step 30, whose snapshot took the name of the deleted one of step 10.
  await rm(at(`${nameOf(10)}.samples.jsonl`));
  await move(nameOf(30), nameOf(10));
  await rename(at(`${nameOf(20)}.samples.jsonl`), at(`${nameOf(30)}.samples.jsonl`));
  const store = fileStore(runDir, { onWarning: () => undefined });
  await store.put(exampleSnapshot({ phase: "em", step: 10 }), rowsOf(10));
  await store.close!();
  const { phases } = await readRun(runDir);
  expect(phases[0]!.snapshots.map(({ step }) => step)).toEqual(steps);
});

it("renames a snapshot back to where the rows of a deleted one are", async () => {
  await rotate([nameOf(10), nameOf(20)]);
  await rm(at(`${nameOf(10)}.json`));
  expect((await readRun(runDir)).problems).toMatchObject([
    misplaced(nameOf(20), 10),
    { kind: "missing", key: { step: 20 } },
  ]);
  await resume();
  expect((await readRun(runDir)).problems).toMatchObject([{ kind: "missing", key: { step: 20 } }]);
  expect(await fileStore(runDir).rows({ phase: "em", id: "capability", step: 10 })).toEqual(rowsOf(10));
});

describe("a snapshot of another run", () => {
  let otherRun: string;
  const copyStep = async (from: number, to: number, into = "em") => {
    for (const ending of endings)
      await copyFile(
        join(otherRun, "periodic_eval", nameOf(from) + ending),
        at(`${into}/capability_step_${to}${ending}`),
      );
  };
  const isOfOther = { kind: "edited", effect: "this measurement is lost", invalid: true };

  it("is named and left out in the place of the same measurement", async () => {
    otherRun = await measuredRun("nested", "2026-02-02T00:00:00.000Z");
    await copyStep(20, 20);
    expect((await readRun(runDir)).problems).toMatchObject([{ ...isOfOther, file: `${nameOf(20)}.json` }]);
  });

  it("is named under the name of another measurement, which is missing", async () => {
    otherRun = await measuredRun("nested", "2026-02-02T00:00:00.000Z");
    await copyStep(20, 10);
    expect((await readRun(runDir)).problems).toMatchObject([
      { kind: "duplicate", file: `${nameOf(10)}.json`, key: { step: 20 } },
      { kind: "missing", file: `${nameOf(10)}.json`, key: { step: 10 } },
    ]);
  });

  it("is left out wherever there is a copy of it", async () => {
    otherRun = await measuredRun("nested", "2026-02-02T00:00:00.000Z");
    await copyStep(20, 20);
    await copyStep(20, 10);
    const { problems, phases } = await readRun(runDir);
    expect(problems).toMatchObject([
      { ...isOfOther, file: `${nameOf(20)}.json` },
      { ...isOfOther, file: `${nameOf(10)}.json`, key: { step: 20 } },
      { kind: "missing", file: `${nameOf(10)}.json`, key: { step: 10 } },
    ]);
    expect(phases[0]!.snapshots.map(({ step }) => step)).toEqual([0, 30]);
    await resume();
    await expectRestored([0, 30]);
  });

  it.each([
    ["older", "2025-02-02T00:00:00.000Z", ""],
    ["newer", "2026-02-02T00:00:00.000Z", ""],
    ["older, in a killed run,", "2025-02-02T00:00:00.000Z", lockText()],
  ])("that is %s is named where this run has no measurement", async (_, created_at, lock) => {
    otherRun = temporaryFolder();
    const store = fileStore(otherRun);
    await store.put(exampleSnapshot({ phase: "em", step: 25, created_at }), rowsOf(25));
    await store.close!();
    await copyStep(25, 25);
    if (lock !== "") await writeFile(at(".lock"), lock);
    const added = {
      kind: "unlisted",
      file: `${nameOf(25)}.json`,
      key: { phase: "em", id: "capability", step: 25 },
      effect: "it may be of another run",
      invalid: false,
    };
    expect((await readRun(runDir)).problems).toMatchObject([added]);
    expect(await resume()).toEqual([expect.stringContaining(added.effect)]);
  });
});

it("renames snapshots back whole after a kill at any change of the disk", async () => {
  for (let count = 1, isOver = false; !isOver; count++) {
    runDir = await measuredRun();
    await rotate([nameOf(10), nameOf(20)]);
    let left = count;
    const mortal =
      <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
      (...args: A): Promise<R> =>
        left-- > 0 ? work(...args) : Promise.reject(new Error("killed"));
    const { rename: renameFile, remove, open, syncFolder } = nodeFiles;
    const fs = {
      ...nodeFiles,
      rename: mortal(renameFile),
      remove: mortal(remove),
      open: mortal(open),
      syncFolder: mortal(syncFolder),
    };
    const store = fileStore(runDir, { fs, onWarning: () => undefined });
    await store.open!().catch(() => undefined);
    isOver = left >= 0;
    await store.close!().catch(() => undefined);
    await rm(at(".lock"), { force: true });
    await resume();
    await expectRestored();
  }
});

it.each([
  ["flat", "em", "EM"],
  ["nested", "em", "EM"],
] as const)("raises no alarm about phases that differ by case: %s", async (layout, ...phases) => {
  runDir = temporaryFolder();
  const store = fileStore(runDir, { layout });
  for (const phase of phases) await store.put(exampleSnapshot({ phase, step: 0 }), rowsOf(0));
  await store.close!();
  expect((await readRun(runDir)).problems).toEqual([]);
});

it("raises no alarm about snapshots on a file system that ignores case", async () => {
  const index = await readFile(at("index.jsonl"), "utf8");
  await rename(at("em"), at("EM"));
  await writeFile(at("index.jsonl"), index);
  expect((await readRun(runDir)).problems).toEqual([]);
});

it("follows no name of an index that leads elsewhere", async () => {
  await rm(at("index.jsonl"));
  const line = { file: "../../capability_step_10.json", phase: "em", id: "capability", step: 10 };
  const rest = { run_step: 10, created_at: "2026-01-01T00:00:00.000Z" };
  await writeFile(at("index.jsonl"), `${JSON.stringify({ ...line, ...rest })}\n`);
  await resume();
  await expectRestored();
});
