// Checks that the hand-written loop of docs/guides/tensorflow-js.md calls the same hooks as SFTTrainer, at the same progress.
import { withSession, type CallbackContext, type TrainerCallback } from "@periodic-eval/core";
import { inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, crossEntropySum, loadDataset, SFTTrainer } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { blocksOf } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";

const text = "The baker is polite.";
const steps = 5;
const learningRate = 1e-3;

/** Records every hook call with its progress, and requests a checkpoint at step 2 and at the last step. */
function tracing() {
  const trace: unknown[] = [];
  const losses: number[] = [];
  const record = (hook: string) => (context: CallbackContext) => {
    const { progress, previous, metrics } = context;
    const { elapsedSeconds: _time, ...at } = progress;
    trace.push([hook, context.phase, at, previous?.step ?? null, "loss" in metrics]);
    if (hook === "onLog") losses.push(metrics["loss"]!);
    if (hook === "onStepEnd" && (at.step === 2 || at.step === steps)) context.requestSave("asked");
  };
  const callback: TrainerCallback = {
    id: "trace",
    onTrainBegin: record("onTrainBegin"),
    onEpochBegin: record("onEpochBegin"),
    onEpochEnd: record("onEpochEnd"),
    onStepBegin: record("onStepBegin"),
    onStepEnd: record("onStepEnd"),
    onLog: record("onLog"),
    onSave: record("onSave"),
    onTrainEnd: record("onTrainEnd"),
    close: () => void trace.push("close"),
  };
  return { trace, losses, callback };
}

it("calls the same hooks in the documented loop as in SFTTrainer", async () => {
  await useBackend({ backend: "wasm" });
  const folder = mkdtempSync(join(tmpdir(), "traces-"));
  const tokenizer = await loadTokenizer(microWorld());
  const dataset = Array.from({ length: steps }, () => ({ text }));

  const trained = tracing();
  const model = await loadCausalLM(microWorld());
  await new SFTTrainer({
    model,
    tokenizer,
    dataset,
    runDir: join(folder, "trainer"),
    config: {
      maxSteps: steps,
      batchSize: 1,
      learningRate,
      schedule: "constant",
      maxGradNorm: null,
      weightDecay: 0,
      logSteps: 1,
    },
    loggers: [],
    callbacks: [trained.callback],
  }).train();
  model.dispose();

  const written = tracing();
  const lm = await loadCausalLM(microWorld());
  const { rows } = await loadDataset(dataset, tokenizer, { maxLength: 256, onBadRow: "error" });
  const adam = new AdamW(lm.trainables(), { weightDecay: 0 });
  const trainStep = ({ ids }: { readonly ids: Int32Array }): number =>
    tf.tidy(() => {
      const input = tf.tensor2d(ids.slice(0, -1), [1, ids.length - 1], "int32");
      const [at, targets] = [tf.range(0, ids.length - 1, 1, "int32"), tf.tensor1d(ids.slice(1), "int32")];
      const { value, grads } = tf.variableGrads(
        () =>
          tf.div(
            crossEntropySum(
              lm.trainingLogits(input, at, () => () => 0.5),
              targets,
            ),
            targets.size,
          ) as tf.Scalar,
        [...lm.trainables()],
      );
      adam.apply(grads, learningRate);
      return value.dataSync()[0]!;
    });
  const block = blocksOf("docs/guides/tensorflow-js.md", "ts").find((code) =>
    code.includes("trainStep(batch)"),
  )!;
  const given = {
    withSession: ((options, train) => withSession({ ...options, loggers: [] }, train)) as typeof withSession,
    inMemory,
    tfjsGuards,
    tokenizer,
    lm,
    adam,
    trainStep,
    batches: rows,
    maxSteps: rows.length,
    callbacks: [written.callback],
    saveCheckpoint: async () => {},
  };
  const code = block
    .replaceAll(/^import .*\n/gm, "")
    .replace('"runs/1"', JSON.stringify(join(folder, "loop")));
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the test runs the documented block
  const run = new Function(...Object.keys(given), `return (async () => {${code}})()`) as (
    ...all: unknown[]
  ) => Promise<void>;
  await run(...Object.values(given));
  adam.dispose();
  lm.dispose();
  rmSync(folder, { recursive: true });

  const hooks = written.trace.map((entry) => (typeof entry === "string" ? entry : (entry as [string])[0]));
  expect(hooks.slice(0, 5)).toEqual(["onTrainBegin", "onEpochBegin", "onStepBegin", "onStepEnd", "onLog"]);
  expect(hooks.slice(-6)).toEqual(["onStepEnd", "onLog", "onEpochEnd", "onSave", "onTrainEnd", "close"]);
  expect(written.trace).toEqual(trained.trace);
  for (const [i, loss] of trained.losses.entries()) expect(written.losses[i]! / loss).toBeCloseTo(1, 5);
});
