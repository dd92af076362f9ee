import { execFileSync } from "node:child_process";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, loadCausalLM, loadLora, useBackend, withLora } from "@periodic-eval/models";
import type { CheckpointLM } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { recording, rows, temporaryFolder, tinyLlama, tokenizer } from "../testing/tiny-run.test-data.ts";
import { SFTTrainer } from "./sft-trainer.ts";

const script = join(import.meta.dirname, "../testing/export-reference.test-data.py");
const ids = [1, 17, 200, 4, 111, 99, 42, 7, 256, 33];
const tolerance = 2e-4;

interface Work {
  readonly make?: readonly { readonly base: string; readonly options: object; readonly out: string }[];
  readonly read?: readonly { readonly base: string; readonly adapter: string | null }[];
}

/** Logits [T·V] of each model. */
function askPython({ make = [], read = [] }: Work): readonly (readonly number[])[] {
  const input = JSON.stringify({ make, read: read.map((task) => ({ ...task, ids })) });
  return JSON.parse(
    execFileSync(python, [script], { input, encoding: "utf8", stdio: "pipe", maxBuffer: 2 ** 26 }),
  ) as number[][];
}

const logitsOf = (model: CheckpointLM): Float32Array =>
  tf.tidy(() => model.logits(tf.tensor2d([ids], [1, ids.length], "int32")).dataSync<"float32">());

const furthest = (one: ArrayLike<number>, other: ArrayLike<number>): number => {
  expect(one).toHaveLength(other.length);
  return Math.max(...Array.from(one, (value, at) => Math.abs(value - other[at]!)));
};

/** Trains ten steps. Returns the logits before and after, and the last checkpoint. */
async function train(model: CheckpointLM) {
  const before = logitsOf(model);
  const { checkpoint } = await new SFTTrainer({
    model,
    tokenizer,
    dataset: rows(30),
    runDir: await temporaryFolder(),
    loggers: [recording()],
    config: { maxSteps: 10, batchSize: 4, learningRate: 0.02 },
  }).train();
  const after = logitsOf(model);
  // Training changes the logits by at least a hundred times the tolerance.
  expect(furthest(before, after)).toBeGreaterThan(100 * tolerance);
  return { after, checkpoint: checkpoint! };
}

async function savedBase(): Promise<string> {
  const model = createCausalLM(tinyLlama, { seed: "export", initStd: 0.2 });
  const folder = await temporaryFolder();
  await model.save(folder);
  model.dispose();
  return folder;
}

const needs = needsPython("transformers and peft");

describe.skipIf(!pythonHas("peft", "transformers"))(`a checkpoint of SFTTrainer (${needs})`, () => {
  beforeAll(() => useBackend({ backend: "wasm" }));

  it("loads in transformers 5.24 with the same logits", async () => {
    const model = await loadCausalLM(await savedBase());
    const { after, checkpoint } = await train(model);
    model.dispose();
    const [theirs] = askPython({ read: [{ base: checkpoint, adapter: null }] });
    expect(furthest(after, theirs!)).toBeLessThan(tolerance);
  }, 300_000);

  it("loads in PEFT 0.21 with the same logits, also when merged", async () => {
    const base = await savedBase();
    const model = await loadCausalLM(base);
    const lora = withLora(model, { rank: 4, dropout: 0.1, rsLora: true });
    const { after, checkpoint } = await train(lora);
    const merged = await temporaryFolder();
    await lora.saveMerged(merged);
    lora.dispose();
    model.dispose();
    const theirs = askPython({
      read: [
        { base, adapter: checkpoint },
        { base: merged, adapter: null },
      ],
    });
    for (const logits of theirs) expect(furthest(after, logits)).toBeLessThan(tolerance);
  }, 300_000);

  it("loads in PEFT again after training a PEFT adapter", async () => {
    const base = await savedBase();
    const adapter = await temporaryFolder();
    const options = {
      r: 4,
      lora_alpha: 8,
      lora_dropout: 0.1,
      target_modules: ["q_proj", "v_proj", "down_proj"],
      rank_pattern: { v_proj: 2 },
    };
    askPython({ make: [{ base, options, out: adapter }] });
    const model = await loadCausalLM(base);
    const lora = await loadLora(model, adapter);
    const { after, checkpoint } = await train(lora);
    lora.dispose();
    model.dispose();
    const [theirs] = askPython({ read: [{ base, adapter: checkpoint }] });
    expect(furthest(after, theirs!)).toBeLessThan(tolerance);
  }, 300_000);
});
