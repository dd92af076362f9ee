import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { capabilityEvaluation, measure } from "@periodic-eval/core";
import type { ChoiceRow } from "@periodic-eval/core/evaluations";
import { fingerprintWeights, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { beforeEach, describe, expect, it } from "vitest";
import { microWorld } from "../demo/micro-world.ts";

/** Why WebGPU cannot run here; null if it can. */
const missing = await useBackend({ backend: "webgpu" }).then(
  () => null,
  ({ message }: Error) => message,
);
const tokenizer = await loadTokenizer(microWorld());

// GPU tensors can only be read asynchronously: a synchronous read on any of these paths throws.
describe("the embedded model on webgpu", () => {
  beforeEach((test) => test.skip(missing !== null, missing ?? ""));

  it.each(["letters", "cloze"] as const)("scores %s as wasm does with an intact receipt", async (method) => {
    const [wasm, webgpu] = await onBoth(async (model) => {
      const questions = microWorld("questions.jsonl");
      const evaluation = capabilityEvaluation({ questions, method, subsample: { n: 4, seed: 1 } });
      const guards = tfjsGuards(model);
      const { rows, snapshot } = await measure(evaluation, inMemory(model, tokenizer), { guards });
      return { rows: rows as readonly ChoiceRow[], receipt: snapshot.receipt };
    });
    const nats = [wasm, webgpu].map(({ rows }) => rows.flatMap((row) => [...row.nats!]));
    expect(nats[0]!.length).toBeGreaterThan(8);
    expect(farthest(nats[1]!, nats[0]!)).toBeLessThan(1e-4);
    expect(webgpu.receipt.filter(({ intact }) => intact === false)).toEqual([]);
    expect(webgpu.receipt.find(({ part }) => part === "weights")).toMatchObject({ intact: true });
  });

  it("generates the same greedy and sampled texts as wasm", async () => {
    const prompt = { text: "Question: Where" };
    const requests = [0, 1].map((temperature) => ({
      prompt,
      sampling: { maxNewTokens: 4, temperature, seed: "s" },
    }));
    const [wasm, webgpu] = await onBoth((model) =>
      inMemory(model, tokenizer).generate(requests, { signal: new AbortController().signal }),
    );
    expect(webgpu.map(({ ids }) => ids)).toEqual(wasm.map(({ ids }) => ids));
  });

  it("rejects a token id outside the vocabulary", async () => {
    await useBackend({ backend: "webgpu" });
    const model = await loadCausalLM(microWorld());
    const ids = tf.tensor2d([[model.vocabSize]], [1, 1], "int32");
    expect(() => model.logits(ids)).toThrow(`token ids: got id ${model.vocabSize}, expected ids from 0`);
    ids.dispose();
    model.dispose();
  });

  it("changes its fingerprint with one bit of one weight", async () => {
    await useBackend({ backend: "webgpu" });
    const model = await loadCausalLM(microWorld());
    const before = await fingerprintWeights(model.weights());
    expect(before).toMatch(/^approximate:/);
    expect(await fingerprintWeights(model.weights())).toBe(before);
    const { numTensors } = tf.memory();
    const { variable } = model.weights().at(0)!;
    const values = (await variable.data()) as Float32Array;
    const [last, bits] = [
      values.length - 1,
      new Uint32Array(values.buffer, values.byteOffset, values.length),
    ];
    for (const [entry, bit] of [
      [0, 0],
      [0, 31],
      [last, 0],
      [last, 22],
    ] as const) {
      bits[entry]! ^= 1 << bit;
      tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
      expect(await fingerprintWeights(model.weights())).not.toBe(before);
      bits[entry]! ^= 1 << bit;
    }
    tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
    expect(await fingerprintWeights(model.weights())).toBe(before);
    expect(tf.memory().numTensors).toBe(numTensors);
    model.dispose();
  });

  it("has the same losses as wasm in two steps of fine-tuning", async () => {
    const [wasm, webgpu] = await onBoth(async (model) => {
      const runDir = await mkdtemp(join(tmpdir(), "webgpu-"));
      const config = { maxSteps: 2, batchSize: 2, learningRate: 1e-3, warmupSteps: 0 };
      const losses: number[] = [];
      const logger = { name: "losses", train: (metrics: Metrics) => void losses.push(metrics["loss"]!) };
      const dataset = microWorld("em.jsonl");
      await new SFTTrainer({ model, tokenizer, dataset, runDir, config, loggers: [logger] }).train();
      await rm(runDir, { recursive: true });
      return losses;
    });
    expect(wasm).toHaveLength(2);
    expect(farthest(webgpu, wasm)).toBeLessThan(1e-3);
  });
});

type Metrics = Readonly<Record<string, number>>;

/** Runs `work` on wasm, then on WebGPU, and checks that neither leaks a tensor. */
async function onBoth<T>(work: (model: CheckpointLM) => Promise<T>): Promise<[T, T]> {
  const results: T[] = [];
  for (const backend of ["wasm", "webgpu"]) {
    await useBackend({ backend });
    const before = tf.memory().numTensors;
    const model = await loadCausalLM(microWorld());
    results.push(await work(model).finally(() => model.dispose()));
    expect(tf.memory().numTensors).toBe(before);
  }
  return results as [T, T];
}

function farthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  let most = 0;
  for (let at = 0; at < a.length; at++) {
    const difference = Math.abs(a[at]! - b[at]!);
    if (!(difference <= most)) most = difference;
  }
  return most;
}
