import { appendFile, copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/core/snapshots";
import { exampleSnapshot } from "@periodic-eval/core/testing";
import { resultsServer } from "@periodic-eval/dashboard/server";
import { beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../core/src/testing/temporary-folder.test-data.ts";
import { readResults } from "../../run/read-results.ts";
import { runCommand } from "../../run-command.test-data.ts";

let runDir: string;
const at = (...parts: string[]) => join(runDir, "periodic_eval", ...parts);
const rows = Array.from({ length: 20 }, (_, item) => ({ id: `q${item}`, correct: item % 3 > 0 }));

beforeEach(async () => {
  runDir = temporaryFolder();
  const store = fileStore(runDir);
  for (const step of [0, 20, 100])
    await store.put(
      exampleSnapshot({ phase: "em", step, crossed: step === 100 ? ["end"] : ["start"] }),
      rows,
    );
  await store.close!();
});

const edit = async (name: string, change: (text: string) => string) =>
  writeFile(at(name), change(await readFile(at(name), "utf8")));
const samples = "em/capability_step_0.samples.jsonl";
const snapshot = "em/capability_step_0.json";
/** Adds a checkpoint whose state lists the three snapshots. */
async function addCheckpoint(): Promise<void> {
  const folder = join(runDir, "checkpoints/em/step_100");
  await mkdir(folder, { recursive: true });
  const session = { snapshots: { "em/capability": [0, 20, 100] } };
  await writeFile(join(folder, "trainer_state.json"), JSON.stringify({ session }));
}

it("verifies an intact run with exit code 0, counts files, and changes nothing", async () => {
  const { code, out, err } = await runCommand(["verify", runDir]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(
    /^files +verified +not verifiable +problems\nsnapshots +3 +0 +0\nrows +3 +0 +0\nindex: verified$/m,
  );
  const json = JSON.parse((await runCommand(["verify", runDir, "--json"])).out);
  expect(json).toEqual({
    run_dir: runDir,
    snapshots: { verified: 3, not_verifiable: 0, problems: 0 },
    rows: { verified: 3, not_verifiable: 0, problems: 0 },
    problems: [],
  });
});

const lost = 'baseline of "em" lost: verdicts of "capability" compare with nothing';

describe.each([
  [
    "five deleted baseline rows",
    () => edit(samples, (text) => text.split("\n").toSpliced(3, 5).join("\n")),
    "rows",
    "damaged rows",
  ],
  ["a flipped verdict", () => edit(samples, (text) => text.replace("true", "false")), "rows", "damaged rows"],
  ["a truncated rows file", () => edit(samples, (text) => text.slice(0, -9)), "rows", "damaged rows"],
  [
    "an edited accuracy",
    () => edit(snapshot, (text) => text.replace('"value": 0.5', '"value": 0.6')),
    "edited",
    "edited or damaged",
  ],
  ["a deleted snapshot", () => rm(at(snapshot)), "missing", "missing"],
  [
    "a deleted periodic_eval",
    async () => (await addCheckpoint(), rm(at(), { recursive: true })),
    "missing",
    "missing",
  ],
])("%s", (_, attack, kind, name) => {
  beforeEach(async () => {
    await attack();
  });

  it("is named by verify, with exit code 1", async () => {
    const { code, out, err } = await runCommand(["verify", runDir, "--json"]);
    expect(code).toBe(1);
    expect(err).toMatch(/got \d problems?, expected snapshots/);
    expect(JSON.parse(out).problems).toContainEqual(expect.objectContaining({ kind, effect: lost }));
  });

  it("is named by report and on its page", async () => {
    const { code, out } = await runCommand(["report", runDir]);
    expect(code).toBe(0);
    expect(out).toContain(`${name}: em/capability_step_0`);
    const page = await readFile(at("index.html"), "utf8");
    expect(page).toContain(`<td class="left">${name}</td>`);
    expect(page).toContain("compare with nothing");
  });
});

it("names damage on the standard error of compare and export", async () => {
  await edit(samples, (text) => text.replace("true", "false"));
  for (const args of [
    ["export", runDir],
    ["compare", runDir, "--group-by", "run"],
  ]) {
    const { code, err } = await runCommand(args);
    expect(code).toBe(0);
    expect(err).toContain(`damaged rows: ${samples}`);
  }
});

const exchange = async (one: string, other: string) => {
  for (const ending of [".json", ".samples.jsonl"]) {
    await rename(at(one + ending), at("kept"));
    await rename(at(other + ending), at(one + ending));
    await rename(at("kept"), at(other + ending));
  }
};

describe.each([
  [
    "two exchanged snapshots",
    () => exchange("em/capability_step_0", "em/capability_step_20"),
    { kind: "misplaced", file: snapshot, effect: "it counts by its content, not by its name" },
    ["renamed", 3, 2],
  ],
  [
    "a snapshot of another run",
    async () => {
      const otherRun = temporaryFolder();
      const store = fileStore(otherRun);
      await store.put(exampleSnapshot({ phase: "em", step: 0, seed: 7 }), rows);
      await store.close!();
      await copyFile(join(otherRun, "periodic_eval", snapshot), at(snapshot));
    },
    { kind: "edited", file: snapshot, effect: lost },
    ["edited or damaged", 2, 1],
  ],
] as const)("%s", (_, attack, problem, [name, verified, problems]) => {
  beforeEach(async () => {
    await attack();
  });

  it("is named by verify, with exit code 1", async () => {
    const { code, out } = await runCommand(["verify", runDir, "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      snapshots: { verified, problems },
      problems: expect.arrayContaining([expect.objectContaining(problem)]),
    });
  });

  it("is named by report, its page, export, compare and replay", async () => {
    const report = await runCommand(["report", runDir, "--json"]);
    expect(JSON.parse(report.out).problems).toContainEqual(expect.objectContaining(problem));
    expect(await readFile(at("index.html"), "utf8")).toContain(`<td class="left">${name}</td>`);
    for (const args of [
      ["export", runDir],
      ["compare", runDir, "--group-by", "run"],
      ["replay", at(snapshot), "--model", "none", "--questions", "none"],
    ]) {
      const { err } = await runCommand(args);
      expect(err).toContain(`${name}: ${snapshot}`);
      expect(err).toContain(problem.effect);
    }
  });

  it("is in the JSON of serve", async () => {
    const server = resultsServer({ root: runDir, readResults });
    const reply = await server.request("/v1/eval", { headers: { Accept: "application/json" } });
    const { problems: found } = (await reply.json()) as { readonly problems: unknown };
    expect(found).toContainEqual(expect.objectContaining(problem));
  });
});

it("does not count older files as problems, and says how many there are", async () => {
  await edit(snapshot, (text) => {
    const { sha256: _, samples: rowsFile, ...rest } = JSON.parse(text);
    return JSON.stringify({ ...rest, samples: { file: rowsFile.file, rows: rowsFile.rows } });
  });
  await edit("index.jsonl", (text) => text.replaceAll(/,"sha256":"\w+","chain":"\w+"/g, ""));
  const { code, out } = await runCommand(["verify", runDir]);
  expect(code).toBe(0);
  expect(out).toMatch(/^snapshots +2 +1 +0\nrows +2 +1 +0$/m);
  expect(out).toContain("2 files are of an older version, without hashes");
});

it("reports a deleted index, an added line, and a folder that is no run", async () => {
  await appendFile(at("index.jsonl"), '{"file":"x"}\n');
  expect(JSON.parse((await runCommand(["verify", runDir, "--json"])).out).problems).toMatchObject([
    { kind: "index" },
  ]);
  await rm(at("index.jsonl"));
  expect((await runCommand(["verify", runDir])).out).toContain("deleted snapshots cannot be seen");
  const { code, err } = await runCommand(["verify", join(runDir, "none")]);
  expect([code, err]).toEqual([1, expect.stringContaining("got no snapshot")]);
});

it("accepts a run that was killed between its first snapshot and the index", async () => {
  for (const step of [20, 100]) {
    await rm(at(`em/capability_step_${step}.json`));
    await rm(at(`em/capability_step_${step}.samples.jsonl`));
  }
  await rm(at("index.jsonl"));
  expect((await runCommand(["verify", runDir])).code).toBe(0);
});
