import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  type TrainerCallback,
} from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { beforeAll, expect, it } from "vitest";
import { killedAfter } from "../testing/checkpoint-files.test-data.ts";
import {
  busyConfig,
  questionFile,
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
  weightsOf,
} from "../testing/tiny-run.test-data.ts";
import type { PipelinePhase } from "./phases.ts";
import { runPipeline } from "./run-pipeline.ts";

const points = 50;
const steps = { coupling: 7, em: 9 };
type PhaseName = keyof typeof steps;

let questions = "";
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  questions = await questionFile();
});

/** Samples, so that measurements depend on seeds as well as on weights. */
const replies = defineEvaluation({
  name: "replies",
  version: "1",
  needs: ["generate"],
  items: () => [{ id: "abc" }, { id: "bcd" }],
  async measure(model, items, { signal, seed }) {
    const prompts = items.map(({ id }) => ({
      prompt: { messages: [{ role: "user" as const, content: id }] },
      sampling: { maxNewTokens: 4, temperature: 1, seed: `${seed}/${id}` },
    }));
    const completions = await model.generate(prompts, { signal });
    return items.map((item, i) => ({ ...item, reply: completions[i]!.text }));
  },
  grade: async (measured) => measured.map((row) => ({ ...row, isShort: row.reply.length < 4 })),
  metrics: ({ rate }) => ({ short: rate((row) => row.isShort, { sampled: true }) }),
});

const callbacks = (): TrainerCallback[] => [
  new PeriodicCapabilityCallback({ questions }),
  new PeriodicCallback(replies, { schedule: [everyPercent(40)] }),
];

/** Runs the remaining steps of both phases from a model of this seed. Returns every metric except times. */
async function run(runDir: string, seed: string, saveSteps: number | null = null) {
  const logger = recording();
  const model = createCausalLM(tinyLlama, { seed, dropout: 0.1 });
  const phases: readonly PipelinePhase[] = [
    { phase: "coupling", dataset: rows(20, "coupling"), callbacks: callbacks() },
    {
      phase: "em",
      dataset: rows(20, "em"),
      validation: rows(4, "held out"),
      config: { schedule: "wsd", decaySteps: 3 },
      callbacks: callbacks(),
    },
  ];
  const results = await runPipeline(
    phases.map((phase) => ({
      ...phase,
      config: { ...phase.config, maxSteps: steps[phase.phase as PhaseName] },
    })),
    {
      model,
      tokenizer,
      runDir,
      config: { ...busyConfig, saveSteps, keepCheckpoints: 99 },
      session: ungoverned,
      loggers: [logger],
    },
  );
  const weights = await weightsOf(model);
  model.dispose();
  return { metrics: logger.metrics, weights, results, record: await recordOf(runDir) };
}

/** Reads every snapshot without times and the hash over them, and every row. */
async function recordOf(runDir: string) {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  return phases.map(({ name, snapshots }) => [
    name,
    snapshots.map(({ created_at: _when, timing: _seconds, sha256: _hash, ...lasting }) => ({
      ...lasting,
      rows: readFileSync(
        join(runDir, "periodic_eval", name, `${lasting.id}_step_${lasting.step}.samples.jsonl`),
        "utf8",
      ),
    })),
  ]);
}

/** Copies a run as if killed some steps after a checkpoint of this phase; `step` 0 is before the first. */
async function killedAt(whole: string, phase: PhaseName, step: number, died: number): Promise<string> {
  const before = phase === "em" ? [["coupling", steps.coupling] as const] : [];
  const kept = Array.from({ length: step }, (_, i) => [phase, i + 1] as const);
  const runDir = await killedAfter(whole, ...before, ...kept);
  const copy = (path: string) => cpSync(join(whole, path), join(runDir, path), { recursive: true });
  if (phase === "em") copy("periodic_eval/coupling");
  mkdirSync(join(runDir, "periodic_eval", phase), { recursive: true });
  for (const name of readdirSync(join(whole, "periodic_eval", phase)))
    if (Number(/_step_(\d+)\./.exec(name)?.[1] ?? Infinity) <= died) copy(`periodic_eval/${phase}/${name}`);
  return runDir;
}

it(
  `resumes a pipeline from ${points} random points to the same weights, losses, rows and metrics`,
  { timeout: points * 60_000 },
  async () => {
    const whole = await temporaryFolder();
    const straight = await run(whole, "tiny", 1);
    expect(straight.metrics).toHaveLength(steps.coupling + steps.em);
    // 40 % of 9 steps: ⌈3.6⌉, ⌈7.2⌉ and the end; 20 %: ⌈1.8⌉, ⌈3.6⌉, ⌈5.4⌉, ⌈7.2⌉ and the end.
    expect(
      readdirSync(join(whole, "periodic_eval/em")).filter((name) => name.endsWith(".json")),
    ).toHaveLength(4 + 6);
    const random = namedStream("resume anywhere");
    const upTo = (most: number) => Math.floor(random() * (most + 1));
    for (let point = 0; point < points; point += 1) {
      const phase: PhaseName = point % 2 === 0 ? "em" : "coupling";
      const step = upTo(steps[phase]);
      const died = step + upTo(steps[phase] - step);
      const runDir = await killedAt(whole, phase, step, died);
      const place = `checkpoint ${step} of ${phase}, killed at ${died}`;
      const done = step + (phase === "em" ? steps.coupling : 0);
      // Other initial weights reveal everything that is not restored.
      const resumed = await run(runDir, done > 0 ? "another model" : "tiny");
      expect(resumed.metrics, place).toEqual(straight.metrics.slice(done));
      expect(resumed.weights, place).toEqual(straight.weights);
      expect(resumed.record, place).toEqual(straight.record);
      const best = ({ results }: typeof straight) => results.at(-1)!.best?.step;
      expect(best(resumed), place).toBe(best(straight));
      rmSync(runDir, { recursive: true });
    }
    rmSync(whole, { recursive: true });
  },
);
