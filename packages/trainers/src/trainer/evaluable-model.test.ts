import * as tf from "@tensorflow/tfjs";
import { beforeAll, expect, it } from "vitest";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

beforeAll(useWasm);

it("returns a model for measurements outside of training that reads the current weights at each call", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2 });
  const runDir = await temporaryFolder();
  const config = { ...busyConfig, maxSteps: 4 };
  const dataset = rows(20);
  const sft = new SFTTrainer({ model, tokenizer, dataset, runDir, config, loggers: [], session: ungoverned });
  const { evaluableModel } = sft;
  const score = async () => {
    const request = { context: { text: "abc" }, continuation: "def" };
    const [{ sumNats } = { sumNats: NaN }] = await evaluableModel.logLikelihoods!([request], {
      signal: new AbortController().signal,
    });
    return sumNats;
  };
  const before = { score: await score(), fingerprint: await sft.modelFingerprint() };
  const { numTensors } = tf.memory();
  expect({ score: await score(), fingerprint: await sft.modelFingerprint() }).toEqual(before);
  expect(tf.memory().numTensors).toBe(numTensors);
  await sft.train();
  expect(await score()).not.toBe(before.score);
  expect(await sft.modelFingerprint()).not.toBe(before.fingerprint);
  model.dispose();
});

it("returns no fingerprint for a model without `weights`", async () => {
  const { weights: _, ...silent } = tinyLM({ vocabSize: tokenizer.vocabSize });
  const runDir = await temporaryFolder();
  const sft = new SFTTrainer({ model: silent, tokenizer, dataset: rows(4), runDir, config: busyConfig });
  expect(await sft.modelFingerprint()).toBeNull();
  silent.dispose();
});
