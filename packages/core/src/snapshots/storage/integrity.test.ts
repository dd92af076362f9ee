import { execFileSync } from "node:child_process";
import { appendFile, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { Paired, Snapshot } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { lockText } from "../../testing/lock-file.test-data.ts";
import { exampleSnapshot } from "../../testing/example-snapshot.ts";
import { temporaryFolder } from "../../testing/temporary-folder.test-data.ts";
import { hashSnapshot, sha256 } from "./content-hash.ts";
import { readEarlierRun } from "./earlier-run.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles, type FileReader } from "./file-system.ts";
import { nextPath } from "./layout.ts";
import { readRun } from "./read-run.ts";
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

async function put(one: Snapshot): Promise<void> {
  const store = fileStore(runDir);
  await store.put(one, []);
  await store.close!();
}

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
  "a deleted snapshot": [() => rm(at(snapshot)), "missing", snapshot],
  "a deleted snapshot with its rows": [
    () => Promise.all([rm(at(snapshot)), rm(at(samples))]),
    "missing",
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

  it("are absent from older files, which are read without problems", async () => {
    const old = JSON.parse(await readFile(at(snapshot), "utf8")) as Snapshot & { samples: object };
    const { sha256: _, ...rest } = old;
    await writeFile(at(snapshot), JSON.stringify({ ...rest, samples: { file: "x", rows: 20 } }));
    await edit("index.jsonl", (text) => text.replaceAll(/,"sha256":"\w+","chain":"\w+"/g, ""));
    expect((await readRun(runDir)).problems).toEqual([]);
    expect(parseVerified(await readFile(at(snapshot), "utf8"), "x").step).toBe(0);
  });

  it("are needed by a command that reads one snapshot", async () => {
    await attacks["an edited accuracy"][0]();
    const text = await readFile(at(snapshot), "utf8");
    expect(() => parseVerified(text, "here")).toThrow(/here: got content with SHA-256/);
  });
});

describe("the index", () => {
  it.each([
    ["removed", withoutLines(0, 1), 1],
    ["edited", (text: string) => text.replace('"value":0.5', '"value":0.9'), 1],
    ["added", (text: string) => `${text}${text.split("\n")[1]}\n`, 3],
    ["damaged in a phase", (text: string) => text.replace('"phase":"em"', '"phase":"eM"'), 1],
    ["damaged in a step", (text: string) => text.replace('"step":0,', '"step":2,'), 1],
    ["swapped", (text: string) => `${text.trimEnd().split("\n").reverse().join("\n")}\n`, 1],
  ])("shows that a line was %s", async (_, change, line) => {
    await edit("index.jsonl", change);
    expect((await readRun(runDir)).problems).toEqual([
      expect.objectContaining({ kind: "index", got: expect.stringContaining(`line ${line} `) }),
    ]);
    const store = fileStore(runDir, { onWarning: () => undefined });
    await store.open!();
    await store.close!();
    expect((await readRun(runDir)).problems).toEqual([]);
  });

  it("names no measurement that there never was for a damaged line of a deleted snapshot", async () => {
    await rm(at(snapshot));
    await edit("index.jsonl", (text) => text.replace('"step":0,', '"step":2,'));
    expect((await readRun(runDir)).problems).toMatchObject([{ kind: "index" }]);
  });

  it("names no measurement that there never was for a damaged line of the flat layout", async () => {
    const flat = fileStore(join(runDir, "flat"), { layout: "flat" });
    await flat.put(exampleSnapshot({ phase: "em" }), rows);
    await flat.close!();
    await edit("../flat/periodic_eval/index.jsonl", (text) => text.replace('"phase":"em"', '"phase":"eM"'));
    expect((await readRun(join(runDir, "flat"))).problems).toMatchObject([{ kind: "index" }]);
  });

  it("shows that lines at its end were removed, but accepts one snapshot without a line after a kill", async () => {
    const store = fileStore(runDir);
    await store.put(exampleSnapshot({ phase: "em", step: 40 }), rows);
    await store.close!();
    await writeFile(at(".lock"), lockText());
    await edit("index.jsonl", (text) => text.split("\n").slice(0, 2).join("\n") + "\n");
    expect((await readRun(runDir)).problems).toEqual([]);
    await edit("index.jsonl", (text) => text.split("\n").slice(0, 1).join("\n") + "\n");
    expect((await readRun(runDir)).problems).toMatchObject([
      {
        kind: "index",
        got: "no lines of 2 snapshots: em/capability_step_20.json, em/capability_step_40.json",
      },
    ]);
  });

  it("names the measurement of an unreadable file of the flat layout", async () => {
    const flat = fileStore(join(runDir, "flat"), { layout: "flat" });
    await flat.put(exampleSnapshot({ phase: "em" }), rows);
    await flat.close!();
    await writeFile(join(runDir, "flat/periodic_eval/capability_step_0.json"), "{");
    expect((await readRun(join(runDir, "flat"))).problems).toMatchObject([
      { kind: "unreadable", key: start, effect: lost },
    ]);
  });

  it("is written again with a warning when it was deleted", async () => {
    await rm(at("index.jsonl"));
    const warnings: string[] = [];
    const store = fileStore(runDir, { onWarning: (message) => warnings.push(message) });
    await store.open!();
    await store.close!();
    expect(warnings).toEqual([expect.stringContaining("deleted snapshots cannot be seen")]);
  });

  it("names a missing snapshot until it is measured again", async () => {
    await rm(at(snapshot));
    const store = fileStore(runDir, { onWarning: () => undefined });
    await store.put(exampleSnapshot({ phase: "em", step: 40 }), rows);
    await store.supersede({ ...start, step: 40 }, "a test");
    expect((await readRun(runDir)).problems).toMatchObject([{ kind: "missing", key: start }]);
    await store.put(exampleSnapshot({ phase: "em" }), rows);
    await store.close!();
    expect((await readRun(runDir)).problems).toEqual([]);
  });

  it("tells a superseded snapshot from one that was measured again and then deleted", async () => {
    const store = fileStore(runDir);
    await store.supersede(start, "a test");
    expect((await readRun(runDir)).problems).toEqual([]);
    await store.put(exampleSnapshot({ phase: "em", created_at: "2026-01-02T00:00:00.000Z" }), rows);
    await store.close!();
    await rm(at(snapshot));
    expect((await readRun(runDir)).problems).toMatchObject([{ kind: "missing", key: start }]);
  });
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

it.each([
  ["a value outside its interval", { value: 0.9 }, "accuracy 0.9"],
  ["a value outside its range", { value: 1.5, ci95: null }, "accuracy 1.5"],
  ["a negative standard error", { stderr: -1 }, "a standard error of -1 of accuracy"],
  [
    "an interval upside down",
    { value: null, ci95: [0.8, 0.1] as [number, number] },
    "an interval of accuracy from 0.8 to 0.1",
  ],
])("names %s", async (_, change, got) => {
  const example = exampleSnapshot({ phase: "em", step: 40 });
  const metrics = { accuracy: { ...example.metrics["accuracy"]!, ...change } };
  await put({ ...example, metrics });
  expect((await readRun(runDir)).problems).toMatchObject([{ kind: "implausible", got }]);
});

it.each([
  [{ correct: 5, total: 4, accuracy: 1 }, "5 correct of 4"],
  [{ correct: -1, total: 4, accuracy: 0.25 }, "-1 correct of 4"],
  [{ correct: 1, total: 4, accuracy: 0.5 }, "accuracy 0.5"],
])("names counts that contradict: %j", async (plain, got) => {
  const example = exampleSnapshot({ phase: "em", step: 40, ...plain });
  await put(example);
  expect((await readRun(runDir)).problems).toMatchObject([{ kind: "implausible", got }]);
});

it.each([
  [{ delta: 0.5 }, "a change of accuracy from its baseline of 0.5"],
  [{ p_value: 1.2 }, "a p-value of accuracy of 1.2"],
])("names a comparison that contradicts itself: %j", async (change, got) => {
  const comparison: Paired = {
    phase: "em",
    step: 0,
    n_pairs: 20,
    delta: -0.1,
    ci95: [-0.2, 0.1],
    test: "mcnemar_exact",
    p_value: 0.4,
    alpha: 0.01,
    minimal_detectable_change: 0.3,
    verdict: "no evidence",
    exploratory: false,
  };
  for (const [paired, problems] of [
    [comparison, []],
    [{ ...comparison, ...change }, [{ kind: "implausible", got }]],
  ] as const) {
    const example = exampleSnapshot({ phase: "em", step: 40 });
    const compared = { ...example, paired: { baseline: { accuracy: paired }, previous: null } };
    await put(compared);
    expect((await readRun(runDir)).problems).toMatchObject(problems);
  }
});
