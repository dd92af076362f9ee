import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { readFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";

let [folder, results] = ["", ""];

function run(...args: string[]) {
  return runCommand(args, smallTasks);
}

/** Measures the embedded model without and with an adapter that breaks it. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "results-report-"));
  results = join(folder, "results");
  const data = await writeSmallData(join(folder, "data"));
  await useBackend({ backend: "wasm" });
  const base = await loadCausalLM(microWorld());
  const lora = withLora(base, { rank: 2 });
  // A new adapter has zeros in lora_B and changes nothing.
  for (const { name, variable } of lora.weights())
    if (name.includes("lora_B")) variable.assign(tf.fill(variable.shape, 0.3));
  await lora.save(join(folder, "adapter"));
  lora.dispose();
  base.dispose();
  const suite = join(folder, "suite.yaml");
  await writeFile(
    suite,
    "schema_version: 1\nname: small\ntasks:\n  facts: { limit: 40 }\n  facts_reply: { limit: 8, data: facts }\n",
  );
  for (const more of [
    ["--name", "base"],
    ["--name", "tuned", "--adapter", join(folder, "adapter")],
  ]) {
    const asked = ["--suite", suite, "--data", data, "--results", results, "--backend", "wasm", ...more];
    expect(await run("eval", "--model", microWorld(), ...asked)).toMatchObject({ code: 0 });
  }
});
afterAll(() => rm(folder, { recursive: true }));

it("writes the page of a results folder and prints a table per task", async () => {
  const { code, out, err } = await run("report", results);
  expect([code, err]).toEqual([0, ""]);
  const { runs } = JSON.parse(await readFile(join(results, "metrics.json"), "utf8"));
  const [base, tuned] = runs.map(
    ({ metrics }: { metrics: Record<string, number> }) => metrics["facts/acc,none"]!,
  );
  expect(tuned).not.toBe(base);
  expect(out).toMatch(new RegExp(`^facts\\nrun .*\\nbase \\(reference\\) +${base.toFixed(4)} `, "m"));
  const delta = `${tuned > base ? "+" : "−"}${Math.abs(tuned - base).toFixed(4)}`;
  expect(out).toMatch(new RegExp(`^tuned +${tuned.toFixed(4)} +0\\.\\d{4} +[▲▼○] \\${delta} `, "m"));
  expect(out).toContain("and 2 groups: on the page");
  expect(out).toContain("Changes are computed over pairs of answers to the same question; ▲ better");
  expect(out.split("\n").at(-1)).toBe(`Open this page in a browser: ${join(results, "index.html")}`);
  const page = await readFile(join(results, "index.html"), "utf8");
  expect(page).toContain("<h2>facts_reply</h2>");
  expect(page).toContain(base.toFixed(4));
});

it("accepts the file itself, another page and another reference, and prints JSON", async () => {
  const page = join(folder, "own.html");
  const file = join(results, "metrics.json");
  const { code, out } = await run("report", file, "--page", page, "--baseline", "tuned", "--json");
  expect(code).toBe(0);
  const report = JSON.parse(out);
  expect(report).toMatchObject({ metrics_file: file, page, reference: "tuned" });
  expect(report.tasks.map(({ name }: { name: string }) => name)).toEqual(["facts", "facts_reply"]);
  const [acc] = report.tasks[0].metrics;
  expect(acc).toMatchObject({ key: "facts/acc,none", higher_is_better: true });
  expect(
    acc.runs.map(({ name, change }: { name: string; change: unknown }) => [name, change === null]),
  ).toEqual([
    ["base", false],
    ["tuned", true],
  ]);
  expect(acc.runs[0].change.pairs).toBe(40);
  expect(await readFile(page, "utf8")).toMatch(/title="95 % [^"]* \(40 pairs\)"/);
});

it("reads a file from another program without standard errors, sizes or suite", async () => {
  const other = join(folder, "other");
  await mkdir(other);
  const runOf = (name: string, acc: number) => ({
    name,
    method: null,
    model: "org/tiny",
    adapter: null,
    config_hash: "abc",
    config_path: null,
    model_args: "pretrained=org/tiny",
    timestamp: "2026-01-02T03:04:05Z",
    extras: {},
    metrics: { "mmlu/acc,none": acc, "mmlu_stem/acc,none": acc / 2 },
  });
  const runs = [runOf("base", 0.25), runOf("tuned", 0.5)];
  await writeFile(join(other, "metrics.json"), JSON.stringify({ schema_version: 1, runs }));
  const { code, out, err } = await run("report", other);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^mmlu\nrun .*\ntuned +0\.5000 .*\+0\.2500.*\nbase \(reference\) +0\.2500/m);
  expect(out).toContain("Changes are computed for two independent samples");
  expect(await readFile(join(other, "index.html"), "utf8")).toContain("+0.2500");
});

it("rejects folders without results in one line", async () => {
  const unknown = await run("report", results, "--baseline", "sft");
  expect(unknown).toEqual({
    code: 1,
    out: "",
    err: expect.stringMatching(/^\[periodic-eval\] --baseline: got "sft", expected base, tuned\..*$/),
  });
  const none = await run("report", join(folder, "adapter"));
  expect([none.code, none.err]).toEqual([1, expect.stringContaining("got no snapshot and no metrics.json")]);
  const damaged = join(folder, "damaged");
  await mkdir(damaged);
  await writeFile(join(damaged, "metrics.json"), '{ "schema_version": 1, "runs": [{}] }');
  const torn = await run("report", damaged);
  expect([torn.code, torn.err]).toEqual([1, expect.stringContaining(join(damaged, "metrics.json"))]);
  const ofRun = await run("report", folder, "--baseline", "base");
  expect([ofRun.code, ofRun.err]).toEqual([2, expect.stringContaining("'--baseline <name>' is for results")]);
});
