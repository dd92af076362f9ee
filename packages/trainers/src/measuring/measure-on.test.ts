import { existsSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicCapabilityCallback, type OpenCheckpoint, type TrainerCallback } from "@periodic-eval/core";
import { hashFiles } from "@periodic-eval/store";
import { inMemory } from "@periodic-eval/tfjs";
import { createCausalLM, loadLora, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { wholeState } from "../testing/checkpoint-files.test-data.ts";
import type { PipelineOptions } from "../pipeline/phases.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { snapshotsOf, trainSFT } from "../testing/recorded-training.test-data.ts";
import { questionFile, rows, temporaryFolder, tinyLlama, tokenizer } from "../testing/tiny-run.test-data.ts";
import type { SFTTrainerOptions } from "../sft/sft-trainer.ts";

let questions = "";
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  questions = await questionFile();
});

const llama = () => createCausalLM(tinyLlama, { seed: "lora", initStd: 0.2 });

/** A server that runs its models in this process. */
function fakeServer() {
  const base = llama();
  const opened: (string | null)[] = [];
  const open = new Set<string | null>();
  const identity = { ...inMemory(base, tokenizer).identity, name: "base", engine: "double" };
  const openCheckpoint: OpenCheckpoint = async (name, path = null) => {
    expect(name).toBe("base");
    opened.push(path);
    open.add(path);
    const adapted = path === null ? null : await loadLora(base, path);
    const model = inMemory(adapted ?? base, tokenizer);
    const weights = path && (await hashFiles([join(path, "adapter_model.safetensors")]));
    return {
      model: { ...model, isServed: true, identity: { ...identity, weights, adapter: path } },
      dispose: () => (open.delete(path), adapted?.dispose()),
    };
  };
  return { server: { identity, openCheckpoint }, opened, open, dispose: () => base.dispose() };
}

const config = { maxSteps: 10, batchSize: 4, learningRate: 0.02, saveSteps: 3, keepCheckpoints: 99 };
const capability = () => new PeriodicCapabilityCallback({ questions });

async function train(
  callbacks: readonly TrainerCallback[],
  { config: given, ...more }: Partial<SFTTrainerOptions> = {},
) {
  const base = llama();
  const model = withLora(base, { rank: 4, dropout: 0.2 });
  try {
    const all = { ...config, ...given };
    const trained = await trainSFT({ model, dataset: rows(30), callbacks, config: all, ...more });
    const { checkpoint } = trained.result;
    return { ...trained, files: checkpoint === null ? null : (await wholeState(checkpoint)).files };
  } finally {
    model.dispose();
    base.dispose();
  }
}

const values = async (runDir: string) =>
  (await snapshotsOf(runDir)).map(({ step, status, metrics, crossed }) => ({
    step,
    status,
    crossed,
    values: Object.entries(metrics).map(([name, { value }]) => [name, value]),
  }));

describe("measureOn", () => {
  it("trains with the bits of a run without measurements, and measures what a run in this process measures", async () => {
    const plain = await train([]);
    const inProcess = await train([capability()]);
    const { server, opened, open, dispose } = fakeServer();
    const before = tf.memory().numTensors;
    const served = await train([capability()], { measureOn: { server } });
    expect(served.weights).toEqual(plain.weights);
    expect(served.files).toEqual(plain.files);
    expect(served.metrics).toEqual(plain.metrics);
    // The double's tensors come and go in this process.
    expect(served.warnings.filter((one) => !one.startsWith('guard "tensors"'))).toEqual([]);
    expect(await values(served.runDir)).toEqual(await values(inProcess.runDir));
    const snapshots = await snapshotsOf(served.runDir);
    expect(snapshots.map(({ step }) => step)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(snapshots.map(({ served: isServed }) => isServed)).toEqual(Array<boolean>(6).fill(true));
    // Each adapter once, and nothing is left.
    expect(new Set(opened).size).toBe(opened.length);
    expect(open.size).toBe(0);
    expect(existsSync(join(served.runDir, "exports", "train"))).toBe(false);
    expect(tf.memory().numTensors).toBe(before);
    dispose();
  });

  it("resumes after an abort with every measurement once", async () => {
    const { server, dispose } = fakeServer();
    const whole = await train([capability()], { measureOn: { server } });
    const runDir = await temporaryFolder();
    const stop = new AbortController();
    const aborting: TrainerCallback = {
      id: "aborting",
      onStepEnd: ({ progress }) => (progress.step === 5 ? stop.abort() : undefined),
    };
    const measureOn = { server };
    await train([capability(), aborting], { runDir, measureOn, signal: stop.signal });
    const resumed = await train([capability()], { runDir, measureOn });
    expect(resumed.result.resumedFrom).toBe(5);
    expect(resumed.weights).toEqual(whole.weights);
    expect(await values(runDir)).toEqual(await values(whole.runDir));
    expect(existsSync(join(runDir, "periodic_eval", "superseded"))).toBe(false);
    // A finished run opens nothing again.
    const again = await train([capability()], { runDir, measureOn });
    expect(again.result.resumedFrom).toBe(10);
    expect(await values(runDir)).toEqual(await values(whole.runDir));
    dispose();
  });

  it("keeps the measured adapters with saveAdapterAtFiring, and the snapshots name them", async () => {
    const { server, dispose } = fakeServer();
    const { runDir } = await train([capability()], {
      measureOn: { server },
      config: { saveAdapterAtFiring: true },
    });
    const saved = (await snapshotsOf(runDir)).map((one) => one.saved?.path);
    expect(saved).toEqual([0, 2, 4, 6, 8, 10].map((step) => join("saved", "train", `step_${step}`)));
    for (const path of saved) expect(existsSync(join(runDir, path!, "adapter_config.json"))).toBe(true);
    dispose();
  });

  it("throws before training if the model has no adapter", async () => {
    const { server, opened, dispose } = fakeServer();
    const model = llama();
    const runDir = await temporaryFolder();
    const options = { model, dataset: rows(30), callbacks: [capability()], config, runDir };
    await expect(trainSFT({ ...options, measureOn: { server } })).rejects.toMatchObject({
      code: "config",
      path: ["measureOn"],
      got: "a model without an adapter",
    });
    model.dispose();
    expect(opened).toEqual([]);
    dispose();
  });

  it("measures each phase of a pipeline from its own start, at the same steps of the run", async () => {
    const { server, dispose } = fakeServer();
    const run = async (more: Partial<PipelineOptions>) => {
      const base = llama();
      const model = withLora(base, { rank: 4 });
      const runDir = await temporaryFolder();
      const phase = (name: string) => ({ phase: name, dataset: rows(12, name), callbacks: [capability()] });
      const session = { budget: { overheadPercent: null } };
      const options = { model, tokenizer, runDir, session, loggers: [], config: { ...config, maxSteps: 2 } };
      await runPipeline([phase("one"), phase("two")], { ...options, ...more });
      model.dispose();
      base.dispose();
      const snapshots = await snapshotsOf(runDir);
      return snapshots.map(({ phase: name, step, run_step: runStep, status, metrics }) => ({
        name,
        step,
        runStep,
        status,
        accuracy: metrics["accuracy"]!.value,
        goldProb: metrics["gold_prob"]!.value,
      }));
    };
    const inProcess = await run({});
    expect(inProcess.map(({ name, runStep }) => [name, runStep])).toEqual([
      ["one", 0],
      ["one", 1],
      ["one", 2],
      ["two", 2],
      ["two", 3],
      ["two", 4],
    ]);
    expect(await run({ measureOn: { server } })).toEqual(inProcess);
    dispose();
  });
});
