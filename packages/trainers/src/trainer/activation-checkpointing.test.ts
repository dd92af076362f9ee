import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyCheckpoint } from "../checkpoint/trainer-state.ts";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  preferences,
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.test-data.ts";

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

const config = { ...busyConfig, maxSteps: 4, saveSteps: 1, keepCheckpoints: 99, maxLength: 60 };

/** Trains with dropout in model and adapter. Returns files of the last checkpoint, metrics, and the number of stream requests. */
async function train(method: "sft" | "dpo", activationCheckpointing: boolean, runDir?: string) {
  const logger = recording();
  const base = createCausalLM(tinyLlama, { seed: "checkpointing", dropout: 0.1, initStd: 0.1 });
  const lora = withLora(base, { rank: 4, dropout: 0.2 });
  let requests = 0;
  const trainingLosses: typeof lora.trainingLosses = (ids, at, targets, random, ...rest) => {
    const counting = (name: string) => {
      requests += 1;
      return random(name);
    };
    return lora.trainingLosses(ids, at, targets, counting, ...rest);
  };
  const model = { ...lora, trainingLosses };
  const folder = runDir ?? (await temporaryFolder());
  const shared = { model, tokenizer, runDir: folder, loggers: [logger], session: ungoverned };
  const trainer =
    method === "sft"
      ? new SFTTrainer({
          ...shared,
          dataset: rows(12),
          config: { ...config, activationCheckpointing, packing: true, validationShare: 0.2 },
        })
      : new DPOTrainer({
          ...shared,
          dataset: preferences(12),
          config: { ...config, activationCheckpointing, disableDropout: false },
        });
  const result = await trainer.train();
  const state = await verifyCheckpoint(result.checkpoint!);
  if (typeof state === "string") throw new Error(state);
  lora.dispose();
  base.dispose();
  return { runDir: folder, result, metrics: logger.metrics, files: state.files, requests };
}

describe.each(["sft", "dpo"] as const)("activationCheckpointing of %s", (method) => {
  it("ends with the bits of a run without it, and resumes to them", async () => {
    const plain = await train(method, false);
    const before = tf.memory().numTensors;
    const less = await train(method, true);
    expect(tf.memory().numTensors).toBe(before);
    expect(less.metrics).toEqual(plain.metrics);
    expect(less.files).toEqual(plain.files);
    expect(less.requests).toBeGreaterThan(plain.requests);
    const runDir = await temporaryFolder();
    await mkdir(join(runDir, "checkpoints/train"), { recursive: true });
    const step2 = join("checkpoints/train", "step_2");
    await cp(join(less.runDir, step2), join(runDir, step2), { recursive: true });
    await expect(train(method, false, runDir)).rejects.toMatchObject({
      got: "activationCheckpointing null",
    });
    const resumed = await train(method, true, runDir);
    expect(resumed.result).toMatchObject({ steps: 4, resumedFrom: 2 });
    expect(resumed.files).toEqual(plain.files);
  });
});

it("throws for a model that does not support it", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const options = { model, tokenizer, dataset: rows(2), runDir: await temporaryFolder() };
  expect(() => new SFTTrainer({ ...options, config: { activationCheckpointing: true } })).toThrow(
    expect.objectContaining({
      where: "SFT config.activationCheckpointing",
      got: "true, for a model that does not support it",
    }),
  );
  model.dispose();
});
