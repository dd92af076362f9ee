import { execFileSync } from "node:child_process";
import { appendFile, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Snapshot, PeriodicEvalError } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { hashSnapshot, sha256 } from "../files/hash-files.ts";
import { readEarlierRun, readRun } from "./read-run.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles, type FileReader } from "../files/file-system.ts";
import { nextPath } from "./layout.ts";
import { parseSealed, parseVerified, readRows, writeSnapshot } from "./snapshot-file.ts";

let runDir: string;
const at = (...parts: string[]) => join(runDir, "periodic_eval", ...parts);
const rows = Array.from({ length: 20 }, (_, item) => ({ id: `q${item}`, correct: item % 3 > 0 }));
const start = { phase: "em", id: "capability", step: 0 };

beforeEach(async () => {
  runDir = temporaryFolder();
  const store = fileStore(runDir);
  for (const step of [0, 20]) await store.put(exampleSnapshot({ phase: "em", step }), rows);
  await store.close!();
});

const edit = async (name: string, change: (text: string) => string) =>
  writeFile(at(name), change(await readFile(at(name), "utf8")));
const withoutLines = (from: number, count: number) => (text: string) =>
  text.split("\n").toSpliced(from, count).join("\n");

const samples = "em/capability_step_0.samples.jsonl";
const snapshot = "em/capability_step_0.json";
const lost = 'baseline of "em" lost: verdicts of "capability" compare with nothing';

const attacks = {
  "five deleted baseline rows": [() => edit(samples, withoutLines(3, 5)), "rows", samples],
  "a flipped verdict": [() => edit(samples, (text) => text.replace("true", "false")), "rows", samples],
  "a reordered row": [() => edit(samples, (text) => text.split("\n").reverse().join("\n")), "rows", samples],
  "a truncated rows file": [() => edit(samples, (text) => text.slice(0, -9)), "rows", samples],
  "an appended row": [() => appendFile(at(samples), '{"id":"q99","correct":true}\n'), "rows", samples],
  "a deleted rows file": [() => rm(at(samples)), "rows", samples],
  "an edited accuracy": [
    () => edit(snapshot, (text) => text.replace('"value": 0.5', '"value": 0.6')),
    "edited",
    snapshot,
  ],
  "an edited plain key": [
    () => edit(snapshot, (text) => text.replace("{", '{"verdict": "better",')),
    "edited",
    snapshot,
  ],
  "a removed hash": [
    () => edit(snapshot, (text) => text.replace(/,\s*"sha256": "[0-9a-f]+"\s*}\s*$/, "}")),
    "edited",
    snapshot,
  ],
  "a truncated snapshot": [() => edit(snapshot, (text) => text.slice(0, 200)), "unreadable", snapshot],
} as const;

describe.each(Object.entries(attacks))("%s", (_, [attack, kind, file]) => {
  it("is a problem with its effect for readers, and a warning for the next session", async () => {
    expect((await readRun(runDir)).problems).toEqual([]);
    await attack();
    const { problems, phases } = await readRun(runDir);
    expect(problems).toEqual([expect.objectContaining({ kind, file, key: start, effect: lost })]);
    expect(problems[0]!.got).not.toBe("");
    const steps = phases[0]!.snapshots.map(({ step }) => step);
    expect(steps).toEqual(kind === "rows" ? [0, 20] : [20]);
    const warnings: string[] = [];
    const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
    await store.open!();
    expect(await store.problems!()).toEqual(problems);
    expect(warnings).toEqual([expect.stringContaining(lost)]);
    expect(await store.get(start)).toEqual(kind === "rows" ? expect.objectContaining({ step: 0 }) : null);
    if (kind === "rows") await expect(store.rows(start)).rejects.toThrow(/capability_step_0.samples.jsonl/);
    await store.close!();
  });
});

it("names a damaged baseline in an earlier run, and does not read its rows", async () => {
  await attacks["a flipped verdict"][0]();
  const earlier = await readEarlierRun(runDir);
  const error = await earlier.rows(earlier.startOf("em", "capability")!).catch((thrown: unknown) => thrown);
  expect(PeriodicEvalError.is(error, "store") && error.got).toMatch(/^20 rows with SHA-256/);
});

it.skipIf(process.platform === "win32")(
  "names pipes and devices in the place of files, and waits for none",
  async () => {
    await rm(at(samples));
    execFileSync("mkfifo", [at(samples), at("em/capability_step_40.json")]);
    await symlink("/dev/zero", at("em/capability_step_60.json"));
    const { problems } = await readRun(runDir);
    expect(problems.map(({ kind, file }) => [kind, file])).toEqual([
      ["unavailable", "em/capability_step_40.json"],
      ["unavailable", "em/capability_step_60.json"],
      ["unavailable", samples],
    ]);
  },
);

describe("the hashes", () => {
  it("are those of the file's bytes and of the canonical JSON", async () => {
    const written = JSON.parse(await readFile(at(snapshot), "utf8")) as Snapshot;
    expect(written.samples).toEqual({
      file: "capability_step_0.samples.jsonl",
      rows: 20,
      sha256: sha256(await readFile(at(samples), "utf8")),
    });
    expect(written.sha256).toBe(hashSnapshot(written));
  });

  it("do not depend on the order of keys or on white space", async () => {
    const written = JSON.parse(await readFile(at(snapshot), "utf8")) as Snapshot;
    const turned = Object.fromEntries(Object.entries(written).reverse());
    expect(parseSealed(JSON.stringify(turned), "x").edited).toBeNull();
  });

  it("are computed again when a snapshot that was read is written", async () => {
    const store = fileStore(runDir);
    const read = (await store.get(start))!;
    await store.put({ ...read, pct: 3 }, rows);
    await store.close!();
    expect((await readRun(runDir)).problems).toEqual([]);
  });

  it("are needed by a command that reads one snapshot", async () => {
    await attacks["an edited accuracy"][0]();
    const text = await readFile(at(snapshot), "utf8");
    expect(() => parseVerified(text, "here")).toThrow(/here: got content with SHA-256/);
  });
});

describe("the index", () => {
  const opened = async () => {
    const warnings: string[] = [];
    const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
    await store.open!();
    await store.close!();
    return warnings;
  };
  it.each([
    ["deleted", () => rm(at("index.jsonl"))],
    ["emptied", () => edit("index.jsonl", () => "")],
    ["edited", () => edit("index.jsonl", (text) => text.replace('"value":0.5', '"value":0.9'))],
    ["without a line", () => edit("index.jsonl", withoutLines(0, 1))],
    ["with a line of a snapshot that is gone", () => edit("index.jsonl", (text) => `${text}{"file":"x"}\n`)],
  ])("is no problem if it is %s, and is the same after the next session", async (_, change) => {
    const before = await readFile(at("index.jsonl"), "utf8");
    const whole = await readRun(runDir);
    await change();
    expect(await readRun(runDir)).toEqual(whole);
    expect(await opened()).toEqual([]);
    expect(await readFile(at("index.jsonl"), "utf8")).toBe(before);
  });
});

it("names the measurement of an unreadable file of the flat layout", async () => {
  const run = join(runDir, "flat");
  const flat = fileStore(run, { layout: "flat" });
  await flat.put(exampleSnapshot({ phase: "other" }), rows);
  await flat.put(exampleSnapshot({ phase: "em" }), rows);
  await flat.close!();
  const file = join(run, "periodic_eval/capability_step_0.em.json");
  await writeFile(file, "{");
  expect((await readRun(run)).problems).toMatchObject([{ kind: "unreadable", key: start, effect: lost }]);
  // The start of the other phase does not stand in for it.
  expect((await readEarlierRun(run)).startOf("em", "capability")).toBeNull();
  await rm(join(run, "periodic_eval/index.jsonl"));
  expect((await readRun(run)).problems).toMatchObject([{ kind: "unreadable", key: start }]);
});

describe("a write that a kill interrupted between rows and snapshot", () => {
  const graded = rows.map((row) => ({ ...row, graded: true }));

  beforeEach(async () => {
    const rename = nodeFiles.rename;
    const dying = {
      ...nodeFiles,
      rename: (from: string, to: string) =>
        to === at(snapshot) ? Promise.reject(new Error("killed")) : rename(from, to),
    };
    const next = exampleSnapshot({ phase: "em", created_at: "2026-01-02T00:00:00.000Z" });
    const store = fileStore(runDir, { fs: dying });
    await expect(store.put(next, graded)).rejects.toThrow("killed");
    await store.close!();
  });

  it("is no damage for a reader, who has the new rows", async () => {
    const { problems, phases } = await readRun(runDir);
    expect(problems).toEqual([]);
    expect(phases[0]!.snapshots[0]!.created_at).toBe("2026-01-01T00:00:00.000Z");
    expect(await fileStore(runDir).rows(start)).toEqual(graded);
  });

  it("is completed by the next session", async () => {
    const store = fileStore(runDir, { onWarning: () => undefined });
    await store.open!();
    expect((await store.get(start))?.created_at).toBe("2026-01-02T00:00:00.000Z");
    await store.close!();
    expect((await readRun(runDir)).problems).toEqual([]);
  });

  it("is dropped if its rows were damaged", async () => {
    await edit(samples, (text) => text.replace("true", "false"));
    const store = fileStore(runDir, { onWarning: () => undefined });
    await store.open!();
    expect(await store.problems!()).toMatchObject([{ kind: "rows", key: start }]);
    await expect(nodeFiles.read(nextPath(at(snapshot)))).rejects.toThrow("ENOENT");
    await store.close!();
  });
});

it("reads the rows of a snapshot that a writer replaces at this moment", async () => {
  const before = (await fileStore(runDir).get(start))!;
  const graded = rows.map((row) => ({ ...row, graded: true }));
  let isReplaced = false;
  const racing: FileReader = {
    list: nodeFiles.list,
    async read(path) {
      if (!isReplaced) {
        isReplaced = true;
        await writeSnapshot(at(snapshot), before, graded, nodeFiles);
      }
      return nodeFiles.read(path);
    },
  };
  expect(await readRows(at(snapshot), before.samples, racing)).toEqual(graded);
});
