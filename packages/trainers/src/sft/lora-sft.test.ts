import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { atEnd, everyPercent, PeriodicCapabilityCallback, type TrainerCallback } from "@periodic-eval/core";
import {
  createCausalLM,
  loadCausalLM,
  loadLora,
  useBackend,
  withLora,
  type CheckpointLM,
} from "@periodic-eval/models";
import { readSafetensorsHeader } from "@periodic-eval/safetensors";
import { beforeAll, describe, expect, it } from "vitest";
import { wholeState } from "../testing/checkpoint-files.test-data.ts";
import { notIntact, snapshotsOf, trainSFT } from "../testing/recorded-training.test-data.ts";
import { questionFile, rows, tinyLlama, weightsOf } from "../testing/tiny-run.test-data.ts";
import type { SFTTrainerOptions } from "./sft-trainer.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const llama = () =>
  createCausalLM({ ...tinyLlama, tie_word_embeddings: true }, { seed: "lora", initStd: 0.2 });

const config = { maxSteps: 10, batchSize: 4, learningRate: 0.02, weightDecay: 0.1 };

/** Creates an adapter on the base, trains it, and disposes it. */
async function train(
  base: CheckpointLM,
  callbacks: readonly TrainerCallback[],
  more: Partial<SFTTrainerOptions> = {},
) {
  const model = withLora(base, { rank: 4, dropout: 0.2 });
  const trained = await trainSFT({ model, dataset: rows(30), callbacks, config, ...more });
  model.dispose();
  return { ...trained, files: (await wholeState(trained.result.checkpoint)).files };
}

describe("SFTTrainer with a LoRA adapter", () => {
  it("trains only the adapter, measured with and without it, with the bits of a run without measurements", async () => {
    const questions = await questionFile();
    const base = llama();
    const own = await weightsOf(base);
    const before = tf.memory().numTensors;
    const plain = await train(base, []);
    const watched = await train(base, [
      new PeriodicCapabilityCallback({ questions }),
      new PeriodicCapabilityCallback({ questions, method: "cloze", id: "with-base", on: "base" }),
    ]);
    expect(watched.weights).toEqual(plain.weights);
    expect(watched.files).toEqual(plain.files);
    expect(watched.metrics).toEqual(plain.metrics);
    expect(plain.metrics.at(-1)!["loss"]).toBeLessThan(0.9 * plain.metrics[0]!["loss"]!);
    expect(await weightsOf(base)).toEqual(own);
    expect(tf.memory().numTensors).toBe(before);

    const snapshots = await snapshotsOf(watched.runDir);
    expect(new Set(snapshots.map(({ status }) => status))).toEqual(new Set(["complete"]));
    expect(notIntact(snapshots)).toEqual([]);
    const goldOf = (id: string) =>
      snapshots.filter((one) => one.id === id).map(({ metrics }) => metrics["gold_log_prob"]!.value);
    const [adapted, bare] = [goldOf("capability"), goldOf("with-base")];
    expect(adapted).toHaveLength(6);
    expect(new Set(adapted).size).toBe(6);
    // Without the adapter, every measurement sees the same model.
    expect(bare).toHaveLength(6);
    expect(new Set(bare).size).toBe(1);
    const adapterOf = (id: string) => {
      const { model } = snapshots.find((one) => one.id === id)!.provenance;
      return (model as Readonly<Record<string, unknown>>)["adapter"];
    };
    expect(adapterOf("capability")).toBe("rank 4, alpha 16");
    expect(adapterOf("with-base")).toBeNull();
    base.dispose();
  });

  it("saves the adapter at each measurement with saveAdapterAtFiring, and trains with the same bits", async () => {
    const base = llama();
    const plain = await train(base, []);
    const capability = () => new PeriodicCapabilityCallback({ questions, schedule: [everyPercent(50)] });
    const questions = await questionFile();
    const kept = await train(base, [capability()], { config: { ...config, saveAdapterAtFiring: true } });
    expect(kept.files).toEqual(plain.files);
    const snapshots = await snapshotsOf(kept.runDir);
    const saved = [0, 5, 10].map((step) => ({ path: join("saved", "train", `step_${step}`), error: null }));
    expect(snapshots.map((one) => one.saved)).toEqual(saved);
    expect(notIntact(snapshots)).toEqual([]);
    // The adapter at the end equals the result of training; at the start B is 0.
    const last = await loadLora(base, join(kept.runDir, saved[2]!.path));
    expect(await weightsOf(last)).toEqual(kept.weights);
    const first = await loadLora(base, join(kept.runDir, saved[0]!.path));
    const isB = first.trainables().map(({ name }) => name.includes("lora_B"));
    expect(
      (await weightsOf(first))
        .filter((_, at) => isB[at])
        .flat()
        .every((one) => one === 0),
    ).toBe(true);
    for (const model of [last, first, base]) model.dispose();
  });

  it("saves all weights of a model without an adapter, and throws if the session has saveAtFiring too", async () => {
    const model = llama();
    const options = {
      model,
      dataset: rows(8),
      config: { maxSteps: 2, saveAdapterAtFiring: true },
      callbacks: [new PeriodicCapabilityCallback({ questions: await questionFile(), schedule: [atEnd()] })],
    };
    const { runDir, weights } = await trainSFT(options);
    const [, last] = await snapshotsOf(runDir);
    const loaded = await loadCausalLM(join(runDir, last!.saved!.path!));
    expect(await weightsOf(loaded)).toEqual(weights);
    const both = trainSFT({ ...options, session: { saveAtFiring: async () => "elsewhere" } });
    await expect(both).rejects.toMatchObject({
      where: "SFT config.saveAdapterAtFiring",
      got: "true together with the session's saveAtFiring",
    });
    loaded.dispose();
    model.dispose();
  });

  it("saves only the adapter's optimizer state, and resumes from its checkpoint with the same bits", async () => {
    const base = llama();
    const whole = await train(base, []);
    const { tensors } = await readSafetensorsHeader(join(whole.result.checkpoint!, "optimizer.safetensors"));
    expect([...tensors.keys()].filter((name) => !/\.lora_[AB]\.weight\.exp_avg(_sq)?$/.test(name))).toEqual(
      [],
    );
    // Seven linear maps in each of two layers, A and B, two means each.
    expect(tensors.size).toBe(2 * 7 * 2 * 2);
    const stopping: TrainerCallback = {
      id: "stopping",
      onStepEnd: (context) => void (context.progress.step === 4 && abort.abort()),
    };
    const abort = new AbortController();
    const first = await train(base, [stopping], { signal: abort.signal });
    expect(first.result.steps).toBe(4);
    const second = await train(base, [], { runDir: first.runDir });
    expect(second.result.resumedFrom).toBe(4);
    expect(second.weights).toEqual(whole.weights);
    base.dispose();
  });

  it("names the callback that changed an adapter, and stops the run", async () => {
    const base = llama();
    const model = withLora(base, { targetModules: ["q_proj"] });
    const meddling: TrainerCallback = {
      id: "meddling",
      onStepEnd: ({ progress }) => {
        if (progress.step === 2) tf.tidy(() => model.trainables()[1]!.assign(tf.ones([8, 16])));
      },
    };
    const { result, warnings } = await trainSFT({ model, dataset: rows(30), config, callbacks: [meddling] });
    expect(result.steps).toBe(2);
    expect(result.brokenReceipt).toContain('"meddling" at step 2');
    const change =
      /1 of them assigned: base_model\.model\.model\.layers\.0\.self_attn\.q_proj\.lora_B\.weight/;
    expect(warnings.join("\n")).toMatch(change);
    model.dispose();
    base.dispose();
  });
});
