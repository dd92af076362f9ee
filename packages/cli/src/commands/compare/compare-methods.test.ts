import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { readMetrics } from "@periodic-eval/tasks";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";

let [folder, results, suite] = ["", "", ""];
const run = (...args: string[]) => runCommand(args, smallTasks);

/** Measures the embedded model as `base`, one adapter as `dpo`, and two as `sft`. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "compare-methods-"));
  results = join(folder, "results");
  const data = await writeSmallData(join(folder, "data"));
  await useBackend({ backend: "wasm" });
  const base = await loadCausalLM(microWorld());
  suite = join(folder, "suite.yaml");
  await writeFile(
    suite,
    "schema_version: 1\nname: small\ntasks:\n  facts: { limit: 40 }\n  facts_reply: { limit: 8, data: facts }\n",
  );
  for (const [name, method, b] of [
    ["base", null, null],
    ["dpo", "dpo", 0.01],
    ["sft-1", "sft", 0.2],
    ["sft-2", "sft", 0.3],
  ] as const) {
    const adapter = join(folder, name);
    if (b !== null) {
      const lora = withLora(base, { rank: 2 });
      for (const { name: weight, variable } of lora.weights())
        if (weight.includes("lora_B")) variable.assign(tf.fill(variable.shape, b));
      await lora.save(adapter);
      lora.dispose();
    }
    const asked = [
      "--suite",
      suite,
      "--data",
      data,
      "--results",
      results,
      "--backend",
      "wasm",
      "--name",
      name,
    ];
    const adapterArgs = method === null ? [] : ["--method", method, "--adapter", adapter];
    expect(await run("eval", "--model", microWorld(), ...asked, ...adapterArgs)).toMatchObject({ code: 0 });
  }
  base.dispose();
});
afterAll(() => rm(folder, { recursive: true }));

describe("compare RESULTS", () => {
  it("prints one table of methods and tasks, with intervals paired by document, also for the mean of several runs", async () => {
    const { code, out, err } = await run("compare", results);
    expect([code, err]).toEqual([0, ""]);
    const { runs } = await readMetrics(join(results, "metrics.json"));
    const [base, dpo] = runs.map(({ metrics }) => metrics["facts/acc,none"]!);
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^method +runs +facts acc ↑ +facts_reply accuracy ↑$/);
    expect(lines[1]).toMatch(new RegExp(`^base \\(baseline\\) +1 +${base!.toFixed(4)} `));
    expect(lines[2]).toMatch(new RegExp(`^dpo +1 +${dpo!.toFixed(4)} `));
    expect(lines[3]).toMatch(/^ +[▲▼○] [+−]?0\.\d{4} \[.*\]/);
    expect(lines[4]).toMatch(/^ +40 pairs of answers +8 pairs of answers$/);
    expect(out).toMatch(/^sft +2 /m);
    expect(out).toMatch(
      / 40 pairs of answers, these 2 runs against 1 +8 pairs of answers, these 2 runs against 1$/m,
    );
    expect(out).toContain("▲ better, ▼ worse, ◆ changed, ○ no evidence");
    expect(out).toContain("A method with several runs shows their mean.");
    expect(out).toContain("Against a single run, intervals are over answers");
  });

  it("takes --method and --baseline, and prints JSON", async () => {
    const { out } = await run("compare", results, "--method", "sft,dpo", "--baseline", "dpo", "--json");
    const compared = JSON.parse(out);
    expect(compared.baseline).toBe("dpo");
    expect(compared.methods.map(({ method }: { method: string }) => method)).toEqual(["sft", "dpo"]);
    const [facts, reply] = compared.metrics;
    expect([facts.key, reply.task]).toEqual(["facts/acc,none", "facts_reply"]);
    expect(facts.methods[0].change).toMatchObject({ over: "documents", pairs: 40 });
    expect(facts.methods[1].change).toBeNull();
    const paired = JSON.parse((await run("compare", results, "--method", "base,dpo", "--json")).out);
    expect(paired.metrics[0].methods[1].change).toMatchObject({ over: "documents", pairs: 40 });
  });

  it("compares results of several folders of one suite in pairs, and refuses another suite", async () => {
    const split = async (name: string, keep: (method: string | null) => boolean) => {
      const other = join(folder, name);
      await mkdir(other);
      const file = JSON.parse(await readFile(join(results, "metrics.json"), "utf8"));
      const runs = file.runs.filter(({ method }: { method: string | null }) => keep(method));
      await writeFile(join(other, "metrics.json"), JSON.stringify({ ...file, runs }));
      await cp(join(results, "jobs"), join(other, "jobs"), { recursive: true });
      return other;
    };
    const [first, second] = [
      await split("one", (method) => method === null),
      await split("two", (method) => method === "dpo"),
    ];
    const { out } = await run("compare", first, second, "--json");
    expect(JSON.parse(out).metrics[0].methods[1]).toMatchObject({
      method: "dpo",
      change: { over: "documents", pairs: 40 },
    });
    const file = JSON.parse(await readFile(join(second, "metrics.json"), "utf8"));
    const changed = file.runs.map((run: object) => ({ ...run, config_hash: "other", suite: { tasks: {} } }));
    await writeFile(join(second, "metrics.json"), JSON.stringify({ ...file, runs: changed }));
    const refused = await run("compare", first, second);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining("one suite for all runs in a file"),
    ]);
  });

  it.each([
    [["--method", "sft,dpoo"], 1, '--method: got "dpoo", expected base, dpo, sft. Did you mean "dpo"?'],
    [["--baseline", "x"], 1, '--baseline: got "x", expected base, dpo, sft. Name one of these.'],
    [["--method", "sft"], 1, "--method: got only sft, expected two methods or more: base, dpo, sft."],
    [["--metric", "accc"], 1, '--metric: got "accc", expected a metric of the results: acc'],
    [["runs/1"], 2, "got runs and results"],
    [
      ["runs/1", "--method", "sft"],
      2,
      "option '--method <names>' is for results: runs/1 has no metrics.json",
    ],
  ])("rejects %j", async (args, code, message) => {
    const refused = await run("compare", results, ...args);
    expect([refused.code, refused.out]).toEqual([code, ""]);
    expect(refused.err).toContain(message);
  });
});

it("report writes the table of methods into the page, by default and as asked", async () => {
  const { code, out } = await run("report", results);
  expect(code).toBe(0);
  expect(out).toMatch(/^base \(baseline\) +1 /m);
  const page = await readFile(join(results, "index.html"), "utf8");
  expect(page).toContain("<h2>Methods</h2>");
  const asked = JSON.parse((await run("report", results, "--baseline", "dpo", "--json")).out);
  expect(asked.methods).toMatchObject({ baseline: "dpo" });
  const wrong = await run("report", results, "--baseline", "bse");
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('Did you mean "base"?')]);
  const ofRun = await run("report", folder, "--baseline", "base");
  expect([ofRun.code, ofRun.err]).toEqual([2, expect.stringContaining("'--baseline <name>' is for results")]);
});

it("eval says that a label is not stored with results that are already measured", async () => {
  const asked = ["--suite", suite, "--data", join(folder, "data"), "--results", results, "--backend", "wasm"];
  const { err } = await run("eval", "--model", microWorld(), ...asked, "--name", "base", "--method", "none");
  expect(err).toContain('They are stored with no method: to store them as "none", add another --name');
});
