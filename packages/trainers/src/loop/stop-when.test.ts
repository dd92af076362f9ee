import { cp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineEvaluation, everySteps, PeriodicCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { beforeAll, expect, it } from "vitest";
import { stepsIn } from "../checkpoint/checkpoints.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import type { SFTConfig } from "../sft/sft-config.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { checkpointFolder } from "../testing/checkpoint-files.test-data.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  recording,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  weightsOf,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

beforeAll(useWasm);

/** A callback that measures every second step. From the measurement of `harmAt` on, most answers are wrong. */
function harmfulFrom(harmAt: number) {
  let step = -2;
  const evaluation = defineEvaluation({
    name: "quiz",
    version: "1",
    needs: ["tokenizer"],
    items: () => Array.from({ length: 60 }, (_, at) => ({ id: `q${at}` })),
    async measure(_model, items) {
      step += 2;
      return items.map((item, at) => ({ ...item, isRight: step < harmAt || at < 20 }));
    },
    metrics: ({ rate }) => ({ accuracy: rate(({ isRight }) => isRight, { higherIsBetter: true }) }),
  });
  return new PeriodicCallback(evaluation, { id: "quiz", schedule: [everySteps(2)] });
}

const config: Partial<SFTConfig> = { ...busyConfig, saveSteps: 1, keepCheckpoints: 1, restore: "last_clean" };

async function train(runDir: string, harmAt: number, changes: Partial<SFTConfig> = {}) {
  const logger = recording();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed: "tiny" });
  const trainer = new SFTTrainer({
    model,
    tokenizer,
    dataset: rows(20),
    runDir,
    config: { ...config, ...changes },
    callbacks: [harmfulFrom(harmAt)],
    loggers: [logger],
    session: { ...ungoverned, stopWhen: ["quiz worse"] },
  });
  const result = await trainer.train();
  const weights = await weightsOf(model);
  model.dispose();
  return { result, weights, warnings: logger.warnings };
}

it("ends training at the harm, keeps the checkpoint before it, and restores its weights", async () => {
  const runDir = await temporaryFolder();
  const { result, weights } = await train(runDir, 6);
  expect(result).toMatchObject({
    steps: 6,
    stopReason: expect.stringContaining("quiz worse: quiz.accuracy is 33.3 % at step 6"),
    conditionStop: { condition: "quiz worse", step: 6, measuredAt: 6, cleanStep: 4 },
    lastClean: { step: 4, checkpoint: checkpointFolder(runDir, 4) },
    isRestored: true,
  });
  expect(await stepsIn(join(runDir, "checkpoints/train"))).toEqual([6, 4]);
  const untilFour = await train(await temporaryFolder(), 99, { maxSteps: 4, schedule: "constant" });
  const constant = await train(await temporaryFolder(), 6, { schedule: "constant" });
  expect(constant.weights).toEqual(untilFour.weights);
  expect(weights).not.toEqual((await train(await temporaryFolder(), 6, { restore: null })).weights);
});

it("stops at the same step and restores the same weights after a kill at any checkpoint, and after the stop", async () => {
  const whole = await temporaryFolder();
  const { weights } = await train(whole, 6, { keepCheckpoints: 99 });
  for (const last of [1, 3, 5, 6]) {
    const runDir = await temporaryFolder();
    await cp(whole, runDir, { recursive: true });
    for (let step = last + 1; step <= 6; step++)
      await rm(checkpointFolder(runDir, step), { recursive: true });
    // The measurements up to the checkpoint are not taken again.
    const again = await train(runDir, Math.max(0, 6 - 2 * Math.floor(last / 2) - 2), { keepCheckpoints: 99 });
    expect([again.result.steps, again.result.isRestored]).toEqual([6, true]);
    expect(again.weights).toEqual(weights);
  }
  const { phases, closings } = await readRun(whole);
  expect(phases[0]!.state).toBe("finished");
  expect(closings[0]).toMatchObject({ finished: true, stop: { step: 6, cleanStep: 4 } });
});

it("writes the restored model once, also after a kill in between", async () => {
  const runDir = await temporaryFolder();
  const folder = join(runDir, "restored/train");
  const { result } = await train(runDir, 6);
  expect(result.restored).toBe(folder);
  const bytesOf = async (path: string) => readFile(join(path, "model.safetensors"));
  const bytes = await bytesOf(folder);
  expect(bytes).toEqual(await bytesOf(result.lastClean!.checkpoint));
  const writtenAt = async () => (await stat(folder)).ino;
  const first = await writtenAt();
  expect((await train(runDir, 6)).result.restored).toBe(folder);
  expect(await writtenAt()).toBe(first);
  await rm(folder, { recursive: true });
  await train(runDir, 6);
  expect(await bytesOf(folder)).toEqual(bytes);
  // Left by another training of the phase.
  await writeFile(join(folder, "model.safetensors"), "other");
  await train(runDir, 6);
  expect(await bytesOf(folder)).toEqual(bytes);
  const kept = await train(await temporaryFolder(), 6, { restore: null });
  expect(kept.result.restored).toBeNull();
});

it("restores the weights before training if nothing later was clean", async () => {
  const runDir = await temporaryFolder();
  const { result, weights } = await train(runDir, 2, { saveSteps: null });
  expect(result).toMatchObject({ steps: 2, lastClean: { step: 0 }, isRestored: true });
  const untrained = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed: "tiny" });
  expect(weights).toEqual(await weightsOf(untrained));
  untrained.dispose();
});

it("keeps the last weights and says so if there is no checkpoint before the harm", async () => {
  const runDir = await temporaryFolder();
  await train(runDir, 2, { saveSteps: null, restore: null });
  const { result, warnings } = await train(runDir, 2);
  expect(result).toMatchObject({ steps: 2, lastClean: null, isRestored: false });
  expect(warnings.join("\n")).toContain("no checkpoint to restore at or before step 0");
});

it("goes on when it is resumed without the condition", async () => {
  const runDir = await temporaryFolder();
  expect((await train(runDir, 6)).result.steps).toBe(6);
  const logger = recording();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed: "tiny" });
  const base = { model, tokenizer, dataset: rows(20), runDir, loggers: [logger], session: ungoverned };
  const result = await new SFTTrainer({ ...base, config: { ...config, restore: null } }).train();
  model.dispose();
  expect(result).toMatchObject({ steps: 12, stopReason: null, conditionStop: null });
});

it("ends a pipeline", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, seed: "tiny" });
  const phase = (name: string, harmAt: number) => ({
    phase: name,
    dataset: rows(20),
    callbacks: [harmfulFrom(harmAt)],
    session: { ...ungoverned, stopWhen: ["quiz worse"] },
  });
  const results = await runPipeline([phase("one", 4), phase("two", 99)], {
    model,
    tokenizer,
    runDir: await temporaryFolder(),
    config: { ...busyConfig },
    loggers: [recording()],
  });
  model.dispose();
  expect(results.map(({ phase: name, steps }) => [name, steps])).toEqual([["one", 4]]);
});
