import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicCapabilityCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { createCausalLM, outlineCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { checkDatasets } from "../pipeline/check-pipeline.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  preferences,
  questionFile,
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.test-data.ts";
import { checkTrainingMemory, estimateTrainingMemory, type TrainingSize } from "./training-memory.ts";

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

const GiB = 2 ** 30;
const size: TrainingSize = {
  rows: 8,
  tokens: 512,
  gradientAccumulation: 1,
  activationCheckpointing: false,
  backend: "wasm",
};
const memory = { backend: "wasm", usedBytes: 0, limitBytes: 4 * GiB };

/** A model of 0.5 GiB whose activations take 2 MiB per token, or a tenth of that with checkpointing. */
const model = (trainables = GiB / 2) => ({
  trainingMemory: ({
    rows,
    tokens,
    activationCheckpointing,
    backend,
  }: Omit<TrainingSize, "gradientAccumulation">) => ({
    weights: GiB / 2,
    trainables,
    activations:
      rows * tokens * 2 ** 21 * (activationCheckpointing ? 0.1 : 1) * (backend === "wasm" ? 1 : 0.01),
    workspace: 0,
  }),
  enterActivationCheckpointing: () => () => {},
});

function refusalOf(given: Parameters<typeof checkTrainingMemory>[0]): unknown {
  try {
    checkTrainingMemory(given);
  } catch (error) {
    return error;
  }
  return null;
}

it("adds weights, gradients, both moments and activations, and two sets of gradients with accumulation", () => {
  // 8 × 512 tokens × 2 MiB = 8 GiB; 0.5 + 0.5 + 1 + 8.
  expect(estimateTrainingMemory(model(), size)!.total).toBe(10 * GiB);
  expect(estimateTrainingMemory(model(), { ...size, gradientAccumulation: 2 })!.total).toBe(10.5 * GiB);
  const plain = tinyLM({ vocabSize: 10 });
  const weights = plain.trainables().reduce((sum, variable) => sum + 4 * variable.size, 0);
  expect(estimateTrainingMemory(plain, size)).toMatchObject({
    weights,
    optimizer: 2 * weights,
    activations: 0,
  });
  plain.dispose();
});

describe("checkTrainingMemory", () => {
  it("refuses what cannot fit and names changes that need less, each with what it would need", () => {
    const error = refusalOf({ where: "phase em", model: model(), size, memory });
    expect(error).toMatchObject({ code: "memory", where: "phase em" });
    const { fix } = error as { readonly fix: string };
    // 2 GiB of weights, gradients and moments; with checkpointing 0.8 GiB more, with 256 tokens 4 GiB, with 1 row and a second set
    // of gradients 1 + 0.5 GiB. An adapter saves 1.5 of 10 GiB.
    expect(fix).toContain("Set activationCheckpointing: true (2.80 GiB)");
    expect(fix).toContain("set maxLength: 257 (6.00 GiB)");
    expect(fix).toContain("set batchSize: 1 and raise gradientAccumulation (3.50 GiB)");
    expect(fix).toContain("train an adapter with withLora(model) (in YAML lora: {}) (8.50 GiB)");
    expect(fix).toContain("use native TensorFlow");
  });

  it("names only remedies that apply", () => {
    // Native memory changes while other processes run: what cannot fit is warned of, with the same remedies.
    const warning = checkTrainingMemory({
      where: "phase em",
      model: model(GiB / 100),
      size: { ...size, activationCheckpointing: true, rows: 64, backend: "tensorflow" },
      memory: { ...memory, backend: "tensorflow", limitBytes: GiB / 2 },
    });
    expect(warning).toContain("batchSize: 1");
    expect(warning).not.toMatch(/activationCheckpointing|withLora|tfjs-node/);
  });

  it("warns if it is tight, and is silent if there is room or the limit is unknown", () => {
    const check = (bytes: number | null) =>
      checkTrainingMemory({
        where: "phase em",
        model: model(),
        size,
        memory: { ...memory, backend: "x", limitBytes: bytes },
      });
    expect(check(10 * GiB)).toContain("10.00 GiB");
    expect(check(12 * GiB)).toBeNull();
    expect(check(null)).toBeNull();
  });
});

it("estimates the tensors of a whole step, moments included, within a factor of 1.6", async () => {
  const lm = createCausalLM(
    { ...tinyLlama, hidden_size: 32, intermediate_size: 96, num_hidden_layers: 6 },
    { seed: "a" },
  );
  const runDir = await temporaryFolder();
  const config = { maxSteps: 1, batchSize: 8, maxLength: 64 };
  const dataset = rows(8).map(({ messages: [user, assistant] }) => ({
    messages: [user!, { ...assistant!, content: (assistant!.content as string).repeat(3) }],
  }));
  const before = tf.memory().numBytes;
  const weights = lm.trainables().reduce((sum, variable) => sum + 4 * variable.size, 0);
  let longest = 0;
  const trainingLosses: typeof lm.trainingLosses = (ids, ...rest) => {
    longest = ids.shape[1];
    return lm.trainingLosses(ids, ...rest);
  };
  const trainer = new SFTTrainer({
    model: { ...lm, trainingLosses },
    tokenizer,
    dataset,
    runDir,
    config,
    loggers: [],
    session: ungoverned,
  });
  const { peakBytes } = await tf.profile(async () => {
    await trainer.train();
    return [];
  });
  const estimate = estimateTrainingMemory(lm, { ...size, rows: 8, tokens: longest, backend: "cpu" })!;
  // The copies that wasm makes of weights are no tensors, so the estimate of a backend without copies is compared.
  const ratio = estimate.total / (peakBytes - before + weights);
  expect(ratio).toBeGreaterThan(0.8);
  expect(ratio).toBeLessThan(1.6);
  lm.dispose();
});

/** A configuration of a model of 2 × 10⁹ weights, without weights. */
const large = {
  ...tinyLlama,
  hidden_size: 2048,
  intermediate_size: 8192,
  num_hidden_layers: 32,
  num_attention_heads: 16,
};

describe("before weights are loaded", () => {
  const problemsOf = async (lora: boolean) => {
    const folder = join(await temporaryFolder(), "large");
    await mkdir(folder);
    await writeFile(join(folder, "config.json"), JSON.stringify(large));
    const outline = await outlineCausalLM(folder);
    const outlined = lora
      ? {
          ...outline,
          trainingMemory: (pass: Omit<TrainingSize, "gradientAccumulation">) =>
            outline.trainingMemory(pass, {}),
        }
      : outline;
    const runDir = await temporaryFolder();
    return checkDatasets({ phase: "em", dataset: rows(8) }, { tokenizer, model: outlined, runDir });
  };

  it("refuses a training that wasm cannot hold", async () => {
    expect(await problemsOf(false)).toEqual([
      expect.objectContaining({ code: "memory", where: 'phase "em"' }),
    ]);
  });

  it("counts an adapter without gradients of the model", async () => {
    const [error] = (await problemsOf(true)) as { readonly got: string }[];
    expect(error!.got).toMatch(/gradients \d+\.\d MiB, optimizer \d+\.\d MiB/);
  });
});

describe("before any work", () => {
  /** A model that wasm cannot train on ten sequences at once, and that fails if it is used. */
  function tooLarge() {
    const lm = createCausalLM(tinyLlama, { seed: "memory" });
    const use = () => {
      throw new Error("the model was used");
    };
    const trainingMemory: typeof lm.trainingMemory = (pass) => ({
      ...lm.trainingMemory(pass),
      ...(pass.rows >= 10 && { activations: 8 * GiB }),
    });
    const model = { ...lm, trainingMemory, logits: use, logitsAt: use, trainingLosses: use };
    return { model: { ...model, incremental: undefined as never }, dispose: () => lm.dispose() };
  }

  it("refuses a phase of a pipeline before the phases that come first", async () => {
    const { model, dispose } = tooLarge();
    const runDir = await temporaryFolder();
    const config = { maxSteps: 1 };
    const callbacks = [new PeriodicCapabilityCallback({ questions: await questionFile() })];
    for (const late of [
      { phase: "late", dataset: rows(12), config: { batchSize: 10 } },
      { phase: "late", method: "dpo" as const, dataset: preferences(5), config: { batchSize: 5 } },
    ]) {
      const phases = [{ phase: "early", dataset: rows(4), callbacks }, late];
      const pipeline = runPipeline(phases, { model, tokenizer, runDir, config, loggers: [] });
      await expect(pipeline).rejects.toMatchObject({ code: "memory", where: 'phase "late"' });
    }
    expect(await readdir(runDir)).toEqual([]);
    dispose();
  });

  it("refuses DPO before the pass of its reference", async () => {
    const { model, dispose } = tooLarge();
    const runDir = await temporaryFolder();
    const config = { maxSteps: 1, batchSize: 5 };
    for (const more of [{}, { reference: model }, { validation: preferences(3) }]) {
      const dataset = preferences(5);
      const trainer = new DPOTrainer({ model, tokenizer, dataset, runDir, config, loggers: [], ...more });
      await expect(trainer.train()).rejects.toMatchObject({ code: "memory", where: 'phase "train"' });
    }
    expect(await readdir(runDir)).toEqual([]);
    dispose();
  });
});

describe("an engine that runs out of memory", () => {
  const full = () => {
    throw Object.assign(new RangeError("the WebAssembly heap is full"), { code: "ENGINE_OUT_OF_MEMORY" });
  };

  it("ends a training with an error that names the step and the last checkpoint", async () => {
    const base = createCausalLM(tinyLlama, { seed: "memory" });
    const lora = withLora(base, { rank: 2 });
    let calls = 0;
    const trainingLosses: typeof lora.trainingLosses = (...given) =>
      (calls += 1) > 2 ? full() : lora.trainingLosses(...given);
    const runDir = await temporaryFolder();
    const trainer = new SFTTrainer({
      model: { ...lora, trainingLosses },
      tokenizer,
      dataset: rows(12),
      runDir,
      config: { maxSteps: 4, batchSize: 4, saveSteps: 1 },
      loggers: [],
      session: ungoverned,
    });
    const error = await trainer.train().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "memory", where: expect.stringContaining('phase "train", ') });
    const { where, fix } = error as { readonly where: string; readonly fix: string };
    expect(where).toContain("step 3");
    expect(where).toContain(join(runDir, "checkpoints", "train", "step_2"));
    // The model trains an adapter already.
    expect(fix).not.toContain("withLora");
    lora.dispose();
    base.dispose();
  });

  it("becomes a failed snapshot in a measurement, and training goes on", async () => {
    const lm = createCausalLM(tinyLlama, { seed: "memory" });
    const runDir = await temporaryFolder();
    const logger = recording();
    const trainer = new SFTTrainer({
      model: { ...lm, incremental: undefined as never, logitsAt: full },
      tokenizer,
      dataset: rows(12),
      runDir,
      config: { maxSteps: 2, batchSize: 4 },
      loggers: [logger],
      session: ungoverned,
    });
    trainer.addCallback(new PeriodicCapabilityCallback({ questions: await questionFile(), atStart: false }));
    await trainer.train();
    const { phases } = await readRun(runDir);
    const [snapshot] = phases[0]!.snapshots;
    expect(snapshot!.status).toBe("failed");
    expect(snapshot!.reason).toMatch(/a measurement that .* no more memory on wasm, .* fewer few-shot/);
    lm.dispose();
  });
});
