import { readRun, snapshotJsonSchema } from "@periodic-eval/core/snapshots";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "csv-parse/sync";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "./commands.test-data.ts";
import { copyEarlierFiles, filesIn, readJson, readJsonLines } from "./files.test-data.ts";
import { withoutWords } from "./schemas.test-data.ts";
import { comparedSession, supersededFiles } from "./sessions.test-data.ts";

let root = "";
/** A run with capability, alignment and leakage, and one in which the grading of alignment was cut off. */
let [finished, killed] = ["", ""];

beforeAll(async () => {
  root = await copyEarlierFiles("http://127.0.0.1:9/");
  killed = join(root, "killed-session/interrupted");
  finished = join(root, "finished");
  for (const folder of [killed, join(root, "killed-session/resumed")])
    await cp(folder, finished, { recursive: true });
  for (const file of [...supersededFiles, "periodic_eval/.lock"]) await rm(join(finished, file));
});
afterAll(() => rm(root, { recursive: true }));

/** Runs a command that must succeed, and returns what it printed. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, text } = await runCommand(args);
  expect(code, text).toBe(0);
  return text;
}

describe("snapshots of an earlier commit", () => {
  const statuses = {
    "killed-session/interrupted": { complete: 5, grading: 1 },
    finished: { complete: 7 },
    "aborted-session/interrupted": { complete: 1 },
    "training/interrupted": { complete: 4 },
    "dpo/interrupted": { complete: 3 },
  };

  it.each(Object.entries(statuses))("are read without problems: %s", async (folder, expected) => {
    const { phases, problems, writer } = await readRun(join(root, folder));
    expect(problems).toEqual([]);
    const counts: Record<string, number> = {};
    for (const { status } of phases.flatMap(({ snapshots }) => snapshots))
      counts[status] = (counts[status] ?? 0) + 1;
    expect(counts).toEqual(expected);
    // Only a process that was killed leaves its lock, and it is known to be dead.
    const isKilled = !["finished", "aborted-session/interrupted"].includes(folder);
    expect(writer?.isAlive).toBe(isKilled ? false : undefined);
  });

  it("hold the number of rows that they record, and match the published JSON Schema", async () => {
    const accepts = new Ajv2020({ strict: false }).compile(snapshotJsonSchema());
    const files = (await filesIn(root)).filter((file) =>
      /periodic_eval\/.*_step_\d+(\.\d+)?\.json$/.test(file),
    );
    // The killed session has 6, its resume 4, both together 7 and a superseded one. The other runs follow.
    expect(files).toHaveLength(6 + 4 + 8 + 1 + 2 + 4 + 3);
    for (const file of files) {
      const snapshot = (await readJson(join(root, file))) as { readonly samples: { readonly rows: number } };
      expect(accepts(snapshot), `${file}: ${JSON.stringify(accepts.errors)}`).toBe(true);
      const rows = await readJsonLines(join(root, file.replace(/\.json$/, ".samples.jsonl")));
      expect(rows, file).toHaveLength(snapshot.samples.rows);
    }
  });

  it("match the JSON Schema that was published with them, to which today's adds only optional fields", async () => {
    const published = (await readJson(join(root, "snapshot.schema.json"))) as object;
    // Compares lists in full, and so what is required.
    expect(withoutWords(snapshotJsonSchema())).toMatchObject(published);
  });

  it("are the baseline of a new session", async () => {
    const runDir = join(root, "compared");
    await comparedSession(root, runDir, killed);
    const { phases } = await readRun(runDir);
    const start = phases[0]!.snapshots[0]!;
    expect(start.paired.baseline?.["accuracy"]).toMatchObject({ run: killed, step: 0, n_pairs: 4, delta: 0 });
  });
});

describe("commands over files of an earlier commit", () => {
  it.each([
    ["finished", /leakage/],
    ["killed-session/interrupted", /alignment/],
    ["training/interrupted", /second/],
    ["dpo/interrupted", /capability\.adapter_off/],
    ["feedback/interrupted", /brief/],
    ["suite/interrupted", /gsm8k/],
  ])("report: %s", async (folder, expected) => {
    expect(await run("report", join(root, folder))).toMatch(expected);
  });

  it("can be compared", async () => {
    const runs = [`one=${finished}`, `other=${join(root, "training/interrupted")}`];
    const { metrics } = JSON.parse(await run("compare", ...runs, "--json")) as {
      readonly metrics: readonly { readonly phase: string; readonly id: string }[];
    };
    expect(metrics.map(({ phase, id }) => `${phase} ${id}`).toSorted()).toEqual([
      "em alignment",
      "em capability",
      "em leakage",
      "first capability",
      "second capability",
    ]);
  });

  it("can be exported", async () => {
    const text = await run("export", `em=${finished}`, `dpo=${join(root, "dpo/interrupted")}`);
    const rows = parse(text, { columns: true }) as readonly Readonly<Record<string, string>>[];
    const accuracy = rows.filter(({ id, metric }) => id === "capability" && metric === "accuracy");
    expect(accuracy.map(({ condition, step, value }) => [condition, step, value])).toEqual([
      ["em", "0", "0.75"],
      ["em", "5", "0.5"],
      ["em", "10", "0.75"],
      ["dpo", "0", "0.5"],
      ["dpo", "3", "0.5"],
    ]);
  });

  it("can be rejudged", async () => {
    const text = await run("rejudge", finished, "--judge", "rule:micro-world", "--json");
    const { snapshots } = JSON.parse(text) as { readonly snapshots: readonly unknown[] };
    expect(snapshots).toHaveLength(2);
  });

  it("can be served", async () => {
    let reply: Promise<unknown> | null = null;
    const served = runCommand(["serve", root, "--port", "0"], (line) => {
      if (line.startsWith("http"))
        reply = fetch(line, { headers: { Accept: "application/json" } })
          .then((response) => response.json())
          .finally(() => process.emit("SIGINT"));
    });
    expect(await served).toMatchObject({ code: 0 });
    const { runs } = (await reply!) as {
      readonly runs: readonly { readonly results_dir: string; readonly problem: string | null }[];
    };
    expect(runs.filter(({ problem }) => problem !== null)).toEqual([]);
    expect(runs.map(({ results_dir: folder }) => folder)).toEqual(
      expect.arrayContaining([
        "dpo/interrupted",
        "feedback/interrupted",
        "finished",
        "killed-session/interrupted",
        "suite/interrupted",
        "training/interrupted",
      ]),
    );
  });
});
