import { readRun } from "@periodic-eval/store";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";

let [folder, config] = ["", ""];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "configured-evaluations-"));
  await writeSmallData(join(folder, "data"));
  await mkdir(join(folder, "sums"));
  await writeFile(join(folder, "sums", "metadata.yaml"), 'name: sums\nversion: "1"\nsplit: val\n');
  const task = {
    id: "a",
    prompt: "What is the colour of the roofs in Cada?",
    answer: "red",
    verifier: "contains",
  };
  await writeFile(join(folder, "sums", "tasks.jsonl"), JSON.stringify(task));
  const rows = readFileSync(microWorld("em.jsonl"), "utf8").split("\n").slice(0, 8);
  await writeFile(join(folder, "em.jsonl"), rows.join("\n"));
  config = join(folder, "train.yaml");
  await writeFile(
    config,
    `model: ${microWorld()}
backend: wasm
run_dir: run
config: { maxSteps: 4, batchSize: 2, learningRate: 0.01 }
periodic_eval:
  capability: false
  budget: { overhead_percent: null }
  evaluations:
    - { task: facts, data: data/facts, limit: 12, every_percent: 50 }
    - { benchmark: sums, max_tokens: 4, schedule: { at_steps: [1] } }
phases:
  - { phase: em, dataset: em.jsonl }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

const wasm = ["--backend", "wasm"];

function run(...args: string[]) {
  return runCommand(args, smallTasks);
}

it("measures the configured tasks and benchmarks in train, and equals eval at the start", async () => {
  expect((await run("train", config)).code).toBe(0);
  const { phases, problems } = await readRun(join(folder, "run"));
  expect(problems).toEqual([]);
  const measurements = phases[0]!.snapshots.map(({ id, step, status }) => `${id} ${step} ${status}`);
  expect(measurements.toSorted()).toEqual([
    "facts 0 complete",
    "facts 2 complete",
    "facts 4 complete",
    "sums 0 complete",
    "sums 1 complete",
    "sums 4 complete",
  ]);
  const data = ["--data", join(folder, "data"), "--limit", "12", "--backend", "wasm", "--json"];
  const { out } = await run("eval", "--model", microWorld(), "--tasks", "facts", ...data);
  const { metrics } = phases[0]!.snapshots.find(({ id, step }) => id === "facts" && step === 0)!;
  const evaluated = JSON.parse(out).metrics as Readonly<Record<string, number>>;
  expect(evaluated["facts/acc,none"]).toBe(metrics["acc"]!.value);
  expect(evaluated["facts/gold_log_prob,none"]).toBe(metrics["gold_log_prob"]!.value);
  expect(evaluated["facts_colours/acc_norm,none"]).toBe(metrics["acc_norm/colours"]!.value);
});

it("prints the measurements in plan, and with a model their cost", async () => {
  const { out } = await run("plan", config, "--phase", "em=4");
  expect(out).toMatch(/facts +0, 2, 4 +3 +– /);
  expect(out).toMatch(/sums +0, 1, 4 +3 +– /);
  const withModel = await run("plan", config, "--phase", "em=4", "--model", microWorld(), ...wasm);
  expect(withModel.out).toMatch(/facts +0, 2, 4 +3 +12 +\S+ s +[\d,]+ /);
  const { out: json } = await run(
    "plan",
    config,
    "--phase",
    "em=4",
    "--model",
    microWorld(),
    ...wasm,
    "--json",
  );
  const { measurement } = JSON.parse(json).callbacks.find(({ id }: { id: string }) => id === "facts");
  // Twelve questions of four choices; each prompt has about ten tokens and is read once.
  expect(measurement).toMatchObject({ items: 12, rows: 12, judged: 0 });
  expect(measurement.tokens).toBeGreaterThan(12 * 8);
  expect(measurement.tokens).toBeLessThan(12 * 4 * 20);
});

it("reports missing data in plan and train before weights are loaded", async () => {
  const weightless = join(folder, "weightless");
  await cp(microWorld(), weightless, { recursive: true, filter: (path) => !path.endsWith(".safetensors") });
  const missing = join(folder, "missing.yaml");
  const yaml = await readFile(config, "utf8");
  await writeFile(
    missing,
    yaml.replace("data/facts", "data/none").replace("benchmark: sums", "benchmark: none"),
  );
  const planned = await run("plan", missing, "--phase", "em=4", "--model", weightless, ...wasm);
  const trained = await run("train", missing, `model=${weightless}`);
  for (const { code, out, err } of [planned, trained]) {
    expect([code, out]).toEqual([1, ""]);
    const [facts, sums, ...more] = err.split("\n");
    expect(facts).toMatch(/missing\.yaml:\d+ periodic_eval\.evaluations\.0.*data\/none/);
    expect(sums).toMatch(/missing\.yaml:\d+ periodic_eval\.evaluations\.1.*none\/tasks\.jsonl/);
    expect(more).toEqual([]);
  }
  // With all data present, the missing weights are the next error.
  const whole = await run("plan", config, "--phase", "em=4", "--model", weightless, ...wasm);
  expect([whole.code, whole.err]).toEqual([1, expect.stringContaining("weightless")]);
});

it.each([
  [
    "periodic_eval.evaluations.0.task=fact",
    /\(periodic_eval\.evaluations\.0\.task\).*: got "fact", expected facts, or a part of one\. Did you mean "facts"\?$/,
  ],
  [
    "periodic_eval.evaluations.0.data=data/none",
    /^\[periodic-eval\] periodic_eval\.evaluations\.0\.data=data\/none \(periodic_eval\.evaluations\.0\.data\)/,
  ],
  [
    "periodic_eval.evaluations.1.benchmark=none",
    /\(periodic_eval\.evaluations\.1\.benchmark\).*none\/tasks\.jsonl", which does not exist/,
  ],
  [
    "periodic_eval.evaluations.1.num_samples=2 periodic_eval.evaluations.1.temperature=0",
    /\(periodic_eval\.evaluations\.1\.num_samples\): got 2 at temperature 0/,
  ],
  [
    "periodic_eval.phases.em.evaluations=[{ tsk: facts }]",
    /\(periodic_eval\.phases\.em\.evaluations\.0\).*: got tsk, expected one of task, benchmark/,
  ],
])("train rejects %s before it begins and names its place", async (override, message) => {
  const { code, out, err } = await run(
    "train",
    config,
    ...override.split(/ (?=periodic_eval)/),
    "run_dir=other",
  );
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(message);
});
