// Runs the conformance suites for users on the package's own models and guards.
import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PeriodicCapabilityCallback, everyEpochs, everyPercent, everySteps } from "@periodic-eval/core";
import { inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { tinyLM } from "../../tfjs/src/causal-lm/tiny-lm.test-data.ts";
import { callbackConformance, fakeTokenizer, guardConformance, modelConformance } from "./index.ts";

const schedule = [everyPercent(20), everySteps(3), everyEpochs(1)];
const preset = () => new PeriodicCapabilityCallback({ questions: "not read here", schedule });
describe("PeriodicCapabilityCallback", () => {
  for (const check of callbackConformance(preset)) it(check.name, check.run);
});

describe("on TensorFlow.js", () => {
  let lm: ReturnType<typeof tinyLM>;
  let tensors = 0;
  const leaked: tf.Tensor[] = [];
  beforeAll(async () => {
    await tf.setBackend("cpu");
    lm = tinyLM({ contextLength: 160 });
    tensors = tf.memory().numTensors;
  });
  afterAll(() => {
    tf.dispose(leaked);
    expect(tf.memory().numTensors).toBe(tensors);
    lm.dispose();
  });

  describe("the live model", () => {
    for (const check of modelConformance(() => inMemory(lm, fakeTokenizer()))) it(check.name, check.run);
  });

  const guard = (name: string) => () => tfjsGuards(lm).find((one) => one.name === name)!;
  const addOneUlp = () => {
    const values = lm.head.dataSync();
    const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
    bits[0]!++;
    const changed = tf.tensor2d(Float32Array.from(values), lm.head.shape);
    lm.head.assign(changed);
    changed.dispose();
  };
  describe.each([
    ["weights", addOneUlp],
    ["variables", addOneUlp],
    ["mode", () => void (lm.training = !lm.training)],
    ["tensors", () => void leaked.push(tf.scalar(1))],
  ])("the guard %s", (name, disturb) => {
    for (const check of guardConformance(guard(name), { disturb })) it(check.name, check.run);
  });
});
