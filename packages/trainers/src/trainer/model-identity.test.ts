import { join } from "node:path";
import {
  createCausalLM,
  loadCausalLM,
  useBackend,
  withLora,
  type CheckpointLM,
  type LoraOptions,
} from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import type { PipelinePhase } from "../pipeline/phases.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { killedAfter } from "../testing/checkpoint-files.test-data.ts";
import { trainSFT } from "../testing/recorded-training.test-data.ts";
import {
  preferences,
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.test-data.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const config = { maxSteps: 4, batchSize: 4, learningRate: 0.02, saveSteps: 1, keepCheckpoints: 99 };
const created = { seed: "frozen", dropout: 0.1, initStd: 0.2 };
const adapter = { rank: 4, alpha: 8, dropout: 0.2, targetModules: ["q_proj", "v_proj"] };

/** Disposes the model, and the `base` under its adapter. */
async function train(runDir: string, base: CheckpointLM, lora: LoraOptions | null) {
  const model = lora === null ? base : withLora(base, lora);
  try {
    return await trainSFT({ model, dataset: rows(20), runDir, config });
  } finally {
    if (lora !== null) model.dispose();
    base.dispose();
  }
}

describe("a resume with a frozen model", () => {
  it.each<[string, object, object, Partial<LoraOptions>, RegExp]>([
    [
      "another base",
      {},
      { seed: "another" },
      {},
      /step_2: got different frozen weights, expected the same frozen weights, as in the checkpoint\. Resume with the same configuration, data and model/,
    ],
    [
      "another alpha",
      {},
      {},
      { alpha: 16 },
      /step_2: got adapter lora_alpha 16, expected adapter lora_alpha 8,/,
    ],
    ["rank-stabilized scaling", {}, {}, { rsLora: true }, /got adapter use_rslora true, expected .*null/],
    ["separate alphas", {}, {}, { alphaPattern: { q_proj: 2 } }, /got adapter alpha_pattern \{"q_proj":2\}/],
    [
      "other targets of the same shapes",
      {},
      {},
      { targetModules: ["o_proj", "v_proj"] },
      /got adapter target_modules \["o_proj","v_proj"\], expected adapter target_modules \["q_proj","v_proj"\]/,
    ],
    ["another dropout of the adapter", {}, {}, { dropout: 0 }, /got adapter lora_dropout 0,/],
    ["another dropout of the model", {}, { dropout: 0 }, {}, /got modes "decoder: training, dropout 0,/],
    [
      "another configuration of the model",
      { rope_theta: 500 },
      {},
      {},
      /got model rope_theta 500, expected model rope_theta null/,
    ],
  ])("throws for %s", async (_, of, made, lora, message) => {
    const whole = await temporaryFolder();
    await train(whole, createCausalLM(tinyLlama, created), adapter);
    const runDir = await killedAfter(whole, 2);
    const other = createCausalLM({ ...tinyLlama, ...of }, { ...created, ...made });
    await expect(train(runDir, other, { ...adapter, ...lora })).rejects.toThrow(message);
  });

  it("is exact with the same model from another folder, and targets in another order", async () => {
    const folders = [await temporaryFolder(), await temporaryFolder()];
    const model = createCausalLM(tinyLlama, created);
    for (const folder of folders) await model.save(join(folder, "model"));
    model.dispose();
    const [one, other] = folders.map((folder) => () => loadCausalLM(join(folder, "model"), { dropout: 0.1 }));
    const whole = await temporaryFolder();
    const { metrics } = await train(whole, await one!(), adapter);
    const turned = { ...adapter, targetModules: ["v_proj", "q_proj"], seed: "another" };
    const resumed = await train(await killedAfter(whole, 2), await other!(), turned);
    expect(resumed.result.resumedFrom).toBe(2);
    expect(resumed.metrics).toEqual(metrics.slice(2));
  });

  it("is exact in later phases, and with a base as reference", async () => {
    const phases: readonly PipelinePhase[] = [
      { phase: "sft", dataset: rows(20) },
      { phase: "dpo", method: "dpo", dataset: preferences(9), reference: "base" },
      { phase: "dpo2", method: "dpo", dataset: preferences(9, "others"), reference: "copy" },
    ];
    const run = async (runDir: string) => {
      const base = createCausalLM(tinyLlama, created);
      const model = withLora(base, adapter);
      const logger = recording();
      const results = await runPipeline(phases, {
        model,
        tokenizer,
        runDir,
        config,
        loggers: [logger],
        session: ungoverned,
      });
      model.dispose();
      base.dispose();
      return { metrics: logger.metrics, from: results.map(({ resumedFrom }) => resumedFrom) };
    };
    const whole = await temporaryFolder();
    const { metrics } = await run(whole);
    const inSecond = await run(await killedAfter(whole, ["sft", 4], ["dpo", 2]));
    expect(inSecond).toEqual({ from: [4, 2, null], metrics: metrics.slice(6) });
    const inThird = await run(await killedAfter(whole, ["sft", 4], ["dpo", 4], ["dpo2", 1]));
    expect(inThird).toEqual({ from: [4, 4, 1], metrics: metrics.slice(9) });
  });
});

describe("a resume of full fine-tuning", () => {
  it("restores every weight, and throws for another configuration", async () => {
    const whole = await temporaryFolder();
    const { metrics } = await train(whole, createCausalLM(tinyLlama, created), null);
    const runDir = await killedAfter(whole, 2);
    const other = createCausalLM({ ...tinyLlama, rms_norm_eps: 1e-3 }, created);
    await expect(train(runDir, other, null)).rejects.toMatchObject({
      where: expect.stringMatching(/step_2$/),
      got: "model rms_norm_eps 0.001",
      expected: "model rms_norm_eps 0.00001, as in the checkpoint",
    });
    const resumed = await train(runDir, createCausalLM(tinyLlama, { ...created, seed: "another" }), null);
    expect(resumed.metrics).toEqual(metrics.slice(2));
  });
});
