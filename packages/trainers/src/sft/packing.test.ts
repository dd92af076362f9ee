import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend, type HuggingFaceConfig } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { collate, type Collatable } from "../data/collate.ts";
import { loadDataset } from "../data/dataset.ts";
import { packRows } from "../data/packing.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { trainSFT } from "../testing/recorded-training.test-data.ts";
import { rows, temporaryFolder, tinyLlama, tokenizer } from "../testing/tiny-run.test-data.ts";
import { batchGradients, SFTTrainer } from "./sft-trainer.ts";
import type { SFTConfig } from "./sft-config.ts";

const configs: Readonly<Record<string, HuggingFaceConfig>> = {
  "rotary positions": { ...tinyLlama },
  "learned positions": {
    model_type: "gpt2",
    vocab_size: tokenizer.vocabSize,
    n_embd: 16,
    n_layer: 2,
    n_head: 2,
    n_positions: 128,
  },
};
const open = (positions: string) =>
  createCausalLM(configs[positions]!, { seed: "packing", initStd: 0.2, dropout: 0 });

describe.each(["cpu", "wasm"])("packed rows on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it.each(Object.keys(configs))(
    "give the same loss and gradients as separate rows: %s",
    async (positions) => {
      const model = open(positions);
      const { rows: apart } = await loadDataset(rows(20), tokenizer, { maxLength: 64, onBadRow: "error" });
      const packed = packRows(apart, 64);
      expect(packed.length).toBeLessThan(apart.length / 2);
      const of = (batch: readonly Collatable[]) => {
        const { loss, gradients } = batchGradients(model, collate(batch), () => () => 0.5);
        const values = Object.entries(gradients).map(([name, each]) => [name, [...each.dataSync()]] as const);
        const found = { loss: loss.dataSync()[0]!, gradients: Object.fromEntries(values) };
        tf.dispose([loss, gradients]);
        return found;
      };
      const [one, other] = [of(packed), of(apart)];
      expect(Math.abs(one.loss / other.loss - 1)).toBeLessThan(1e-5);
      const names = Object.keys(other.gradients);
      expect(Object.keys(one.gradients)).toEqual(names);
      const largest = Math.max(...names.flatMap((name) => other.gradients[name]!.map(Math.abs)));
      const off = names.flatMap((name) =>
        one.gradients[name]!.map((value, i) => Math.abs(value - other.gradients[name]![i]!)),
      );
      expect(Math.max(...off) / largest).toBeLessThan(1e-5);
      model.dispose();
    },
  );
});

describe("SFTTrainer with packing", () => {
  beforeAll(async () => void (await useBackend({ backend: "wasm" })));

  async function train(config: Partial<SFTConfig>) {
    const model = open("rotary positions");
    const given = { maxLength: 64, learningRate: 0.01, ...config };
    const trained = await trainSFT({ model, dataset: rows(20), config: given });
    model.dispose();
    return trained;
  }

  it("takes the same steps as without packing if a step has all rows, and repeats them exactly", async () => {
    const whole = { batchSize: 20, maxSteps: 4 };
    const [apart, packed, again] = [
      await train(whole),
      await train({ ...whole, packing: true }),
      await train({ ...whole, packing: true }),
    ];
    packed.metrics.forEach(({ loss, grad_norm }, step) => {
      expect(Math.abs(loss! / apart.metrics[step]!["loss"]! - 1)).toBeLessThan(1e-5);
      expect(Math.abs(grad_norm! / apart.metrics[step]!["grad_norm"]! - 1)).toBeLessThan(1e-4);
    });
    expect(again).toMatchObject({ metrics: packed.metrics, weights: packed.weights });
  });

  it("counts packed rows in an epoch", async () => {
    const { rows: documents } = await loadDataset(rows(20), tokenizer, { maxLength: 64, onBadRow: "error" });
    const { result } = await train({ epochs: 1, batchSize: 2, packing: true });
    expect(result.steps).toBe(Math.ceil(packRows(documents, 64).length / 2));
    expect(result.steps).toBeLessThan(10);
  });

  it("holds out the same rows of the dataset as without packing, and packs the rest", async () => {
    // With a rate of 0, every loss is that of the initial model, over all training rows and all held-out rows.
    const still = { batchSize: 20, maxSteps: 1, learningRate: 0, validationShare: 0.25 };
    const [apart] = (await train(still)).metrics;
    const [packed] = (await train({ ...still, packing: true })).metrics;
    for (const name of ["loss", "eval_loss"])
      expect(Math.abs(packed![name]! / apart![name]! - 1), name).toBeLessThan(1e-5);
    // 15 of 20 rows remain; unpacked they make 8 batches of 2.
    const { result } = await train({ epochs: 1, batchSize: 2, packing: true, validationShare: 0.25 });
    expect(result.steps).toBeLessThan(8);
  });

  it("throws for a model that does not separate documents, and without maxLength", async () => {
    const model = tinyLM({ vocabSize: tokenizer.vocabSize });
    const options = { model, tokenizer, dataset: rows(4), runDir: await temporaryFolder() };
    expect(() => new SFTTrainer({ ...options, config: { packing: true, maxLength: 64 } })).toThrow(
      expect.objectContaining({
        where: "SFT config.packing",
        got: "true, for a model in which documents of one row would see each other",
        expected: "a model with takesDocuments",
      }),
    );
    expect(() => new SFTTrainer({ ...options, config: { packing: true } })).toThrow(
      expect.objectContaining({
        where: "SFT config.packing",
        got: "true without `maxLength`",
        expected: "also `maxLength`, the tokens of a packed row",
      }),
    );
    model.dispose();
  });
});
