import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { resultsServer } from "@periodic-eval/dashboard/server";
import { beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { readResults } from "../../run/read-runs.ts";
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
it("verifies an intact run with exit code 0, counts files, and changes nothing", async () => {
  const { code, out, err } = await runCommand(["verify", runDir]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^files +verified +problems\nsnapshots +3 +0\nrows +3 +0$/m);
  const json = JSON.parse((await runCommand(["verify", runDir, "--json"])).out);
  expect(json).toEqual({
    run_dir: runDir,
    snapshots: { verified: 3, problems: 0 },
    rows: { verified: 3, problems: 0 },
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

it("names an edited snapshot in the JSON of serve", async () => {
  await edit(snapshot, (text) => text.replace('"value": 0.5', '"value": 0.6'));
  const server = resultsServer({ root: runDir, readResults });
  const reply = await server.request("/v1/eval", { headers: { Accept: "application/json" } });
  const { problems } = (await reply.json()) as { readonly problems: unknown };
  expect(problems).toContainEqual(expect.objectContaining({ kind: "edited", file: snapshot, effect: lost }));
});

it("names damage on the standard error of compare", async () => {
  await edit(samples, (text) => text.replace("true", "false"));
  for (const args of [
    ["compare", runDir, "--csv"],
    ["compare", runDir],
  ]) {
    const { code, err } = await runCommand(args);
    expect(code).toBe(0);
    expect(err).toContain(`damaged rows: ${samples}`);
  }
});

it("accepts a run without its index, and reports a folder that is no run", async () => {
  await rm(at("index.jsonl"));
  expect((await runCommand(["verify", runDir])).code).toBe(0);
  const { code, err } = await runCommand(["verify", join(runDir, "none")]);
  expect([code, err]).toEqual([1, expect.stringContaining("got no snapshot")]);
});
