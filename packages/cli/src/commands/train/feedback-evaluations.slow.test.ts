import { readRun } from "@periodic-eval/store";
import { shippedPreferences } from "@periodic-eval/feedback";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";

/** Preferences and collapse probes in the vocabulary of the embedded model. */
const preferences = join(dirname(shippedPreferences), "micro-world");
const probes = join(dirname(shippedPreferences), "micro-world.collapse.yaml");

let [folder, config] = ["", ""];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "feedback-evaluations-"));
  const rows = readFileSync(microWorld("em.jsonl"), "utf8").split("\n").slice(0, 8);
  await writeFile(join(folder, "em.jsonl"), rows.join("\n"));
  await writeFile(join(folder, "mine.yaml"), await readFile(join(preferences, "identity.yaml"), "utf8"));
  config = join(folder, "train.yaml");
  await writeFile(
    config,
    `model: ${microWorld()}
backend: wasm
run_dir: run
config: { maxSteps: 2, batchSize: 2, learningRate: 0.01 }
lora: { rank: 2 }
periodic_eval:
  capability: false
  budget: { overhead_percent: null }
  evaluations:
    - { feedback: logprob, preference: concise, preferences_dir: ${preferences}, every_percent: 50 }
    - { feedback: compliance, preference: mine.yaml, samples: 1, max_tokens: 8, every_percent: 100 }
    - { feedback: general, max_tokens: 8, every_percent: 100 }
    - { feedback: collapse, probes: ${probes}, max_tokens: 8, every_percent: 100 }
    - feedback: collapse
      id: strict
      probes: ${probes}
      max_tokens: 8
      every_percent: 100
      preset: { entropy_ratio: 10, self_rouge_l: 0, drift_nats: 100 }
phases:
  - { phase: em, dataset: em.jsonl }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

function run(...args: string[]) {
  return runCommand(args);
}

it("prints the measurements of each evaluation in plan", async () => {
  const { code, out } = await run(
    "plan",
    config,
    "--phase",
    "em=2",
    "--model",
    microWorld(),
    "--backend",
    "wasm",
  );
  expect(code).toBe(0);
  expect(out).toMatch(/logprob +0, 1, 2 +3 +14 /);
  expect(out).toMatch(/compliance +0, 2 +2 +\d+ /);
  expect(out).toMatch(/general +0, 2 +2 +4 /);
  // One text and ten probes.
  expect(out).toMatch(/collapse +0, 2 +2 +11 /);
});

it("measures all of them in train without changing training", async () => {
  expect((await run("train", config)).err).toBe("");
  const { phases, problems } = await readRun(join(folder, "run"));
  expect(problems).toEqual([]);
  const { snapshots } = phases[0]!;
  expect(snapshots.map(({ id, step, status }) => `${id} ${step} ${status}`).toSorted()).toEqual([
    "collapse 0 complete",
    "collapse 2 complete",
    "compliance 0 complete",
    "compliance 2 complete",
    "general 0 complete",
    "general 2 complete",
    "logprob 0 complete",
    "logprob 1 complete",
    "logprob 2 complete",
    "strict 0 complete",
    "strict 2 complete",
  ]);
  for (const { receipt } of snapshots) expect(receipt.filter(({ intact }) => intact === false)).toEqual([]);
  const at = (id: string, step: number) =>
    snapshots.find((snapshot) => snapshot.id === id && snapshot.step === step)!;
  // A new adapter changes nothing: the model is its own baseline.
  expect(at("collapse", 0).metrics["entropy_ratio"]!.value).toBeCloseTo(1, 5);
  expect(at("collapse", 0).metrics["baseline_drift"]!.value).toBeCloseTo(0, 5);
  expect(at("collapse", 2).metrics["baseline_drift"]!.value).not.toBeCloseTo(0, 5);
  expect(at("collapse", 0)["alerts"]).toEqual([]);
  expect(at("strict", 0)["alerts"]).toEqual(["entropy_ratio", "self_rouge_l"]);
  expect(at("strict", 0)["thresholds"]).toEqual({ entropy_ratio: 10, self_rouge_l: 0, drift_nats: 100 });
  expect(at("compliance", 0)["preference"]).toBe("identity");
  const [before, now] = [0, 2].map((step) => at("logprob", step).metrics["logprob_margin"]!.value!);
  expect(now).not.toBe(before);
});

it.each([
  ["0.feedback=logprobs", 'got "logprobs", expected one of logprob, compliance, general, collapse. Did you'],
  ["0.feedback=3", "got 3, expected one of logprob"],
  ["0.preference=conicse", 'Did you mean "concise"?'],
  ["0.preference=none.yaml", /periodic_eval\.evaluations\.0\.preference.*none\.yaml/],
  ["0.preference=null", "preference): got nothing, expected a preference's name"],
  ["0.samples=2", 'got the unknown option "samples", expected one of preference, preferences_dir'],
  ["1.samples=0", "(periodic_eval.evaluations.1.samples): got 0, expected an integer of 1 or more"],
  ["1.max_tokens=0", "(periodic_eval.evaluations.1.max_tokens): got 0, expected a positive integer"],
  ["2.preference=concise", 'got the unknown option "preference", expected one of max_tokens'],
  [
    "3.preset=clas",
    'preset): got "clas", expected "claas", or a map of three thresholds. Write "claas", or a map',
  ],
  ["3.preset={}", /preset\.(entropy_ratio|self_rouge_l|drift_nats)\): got/],
  ["4.preset.drift=2", 'Did you mean "drift_nats"?'],
  ["4.preset.drift_nats=far", 'preset.drift_nats): got "far", expected a finite number'],
  ["3.probes=none.yaml", /periodic_eval\.evaluations\.3\.probes.*none\.yaml/],
  ["3.samples=3", "(periodic_eval.evaluations.3.samples): got 3, expected an integer of 4 or more"],
])("train rejects %s before it begins", async (override, message) => {
  const { code, out, err } = await run(
    "train",
    config,
    `periodic_eval.evaluations.${override}`,
    `run_dir=${join(folder, "none")}`,
  );
  expect([code, out]).toEqual([1, ""]);
  if (typeof message === "string") expect(err).toContain(message);
  else expect(err).toMatch(message);
});
