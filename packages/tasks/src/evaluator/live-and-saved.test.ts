import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OpenCheckpoint } from "@periodic-eval/core";
import { checkAdapterBase } from "@periodic-eval/data";
import { fakeTokenizer } from "@periodic-eval/testing";
import { fingerprintWeights, inMemory } from "@periodic-eval/tfjs";
import { createCausalLM, loadCausalLM, loadLora, useBackend, withLora } from "@periodic-eval/models";
import { SFTTrainer } from "@periodic-eval/trainers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const tokenizer = fakeTokenizer();
const root = temporaryFolder(afterAll);
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  await writeFile(join(root, "suite.yaml"), suiteText);
});

const options = (name: string) => ({
  name,
  tasks: { choices: choiceTask(), replies: replyTask() },
  suite: join(root, "suite.yaml"),
  results: join(root, "results"),
});

/** Opens a model as the command line does. */
const openModel: OpenCheckpoint = async (folder, adapter = null) => {
  const checkBase = adapter === null ? null : await checkAdapterBase(adapter, folder);
  const base = await loadCausalLM(folder);
  await checkBase?.(() => fingerprintWeights(base.weights(), { method: "exact" }));
  const model = adapter === null ? base : await loadLora(base, adapter);
  return {
    model: inMemory(model, tokenizer),
    fingerprint: () => fingerprintWeights(model.weights(), { method: "exact" }),
    dispose() {
      if (model !== base) model.dispose();
      base.dispose();
    },
  };
};

const tiny = (seed: string) =>
  createCausalLM(
    {
      model_type: "llama",
      hidden_size: 16,
      intermediate_size: 32,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      max_position_embeddings: 128,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
      vocab_size: tokenizer.vocabSize,
    },
    { seed, initStd: 0.2 },
  );

it("gives the same numbers for a trainer's live weights and for its saved checkpoint", async () => {
  for (const seed of ["base", "other"]) {
    const made = tiny(seed);
    await made.save(join(root, seed));
    made.dispose();
  }
  const base = await loadCausalLM(join(root, "base"));
  const model = withLora(base, { rank: 4 });
  const dataset = Array.from({ length: 12 }, (_, i) => ({ text: `What is law number ${i}?\nAnswer: this` }));
  const config = { maxSteps: 6, batchSize: 4, learningRate: 0.05 };
  const runDir = join(root, "run");
  const trainer = new SFTTrainer({ model, tokenizer, dataset, runDir, config, loggers: [] });
  const before = await Evaluator.fromTrainer(trainer, options("base")).run();
  const { checkpoint } = await trainer.train();
  const live = await Evaluator.fromTrainer(trainer, options("sft")).run();
  expect(live.run.metrics).not.toEqual(before.run.metrics);
  expect(live.run.adapter).toBe("rank 4, alpha 16");

  const saved = (folder: string, adapter: string | null) =>
    Evaluator.fromCheckpoint(join(root, folder), {
      ...options(`saved-${folder}${adapter === null ? "" : "-adapted"}`),
      adapter,
      openModel,
    })[0].run();
  const { run } = await saved("base", checkpoint);
  expect(run.metrics).toEqual(live.run.metrics);
  expect(run.stderr).toEqual(live.run.stderr);
  expect(run).toMatchObject({ model: join(root, "base"), adapter: checkpoint });
  expect((await saved("base", null)).run.metrics).toEqual(before.run.metrics);
  // The checkpoint records the weights that it was trained from.
  await expect(saved("other", checkpoint)).rejects.toThrow("the weights differ");
  model.dispose();
  base.dispose();
});
