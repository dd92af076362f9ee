import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { accumulate } from "../loop/training-data.ts";
import { loadPreferences } from "../data/dataset.ts";
import { trainDPO } from "../testing/recorded-training.test-data.ts";
import {
  preferences,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  weightsOf,
} from "../testing/tiny-run.test-data.ts";
import { parseDPOConfig } from "./dpo-config.ts";
import { DPOTrainer, type DPOTrainerOptions } from "./dpo-trainer.ts";
import { collatePairs, pairGradients } from "./pair-batch.ts";
import { referenceLogProbs } from "./reference.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const llama = (seed = "dpo", dropout = 0) =>
  createCausalLM({ ...tinyLlama, tie_word_embeddings: true }, { seed, dropout, initStd: 0.2 });

const config = {
  maxSteps: 15,
  batchSize: 4,
  learningRate: 0.02,
  schedule: "constant",
  maxGradNorm: null,
} as const;

async function train(more: Partial<DPOTrainerOptions> = {}) {
  const model = more.model ?? llama();
  const trained = await trainDPO({ dataset: preferences(12), config, ...more, model });
  if (more.model === undefined) model.dispose();
  return trained;
}

describe("DPOTrainer", () => {
  it("starts at a reward of 0, learns the preferences, and logs TRL's metrics", async () => {
    const before = tf.memory().numTensors;
    const { result, metrics } = await train();
    expect(tf.memory().numTensors).toBe(before);
    expect(result).toMatchObject({ steps: 15, maxSteps: 15, badRows: [] });
    expect(Object.keys(metrics[0]!).sort()).toEqual([
      "grad_norm",
      "learning_rate",
      "logps/chosen",
      "logps/rejected",
      "loss",
      "rewards/accuracies",
      "rewards/chosen",
      "rewards/margins",
      "rewards/rejected",
      "step",
    ]);
    const [first, last] = [metrics[0]!, metrics.at(-1)!];
    expect(first["loss"]).toBeCloseTo(Math.LN2, 4);
    expect(first["rewards/margins"]).toBeCloseTo(0, 4);
    expect(last["loss"]).toBeLessThan(0.4);
    expect(last["rewards/accuracies"]).toBe(1);
    expect(last["rewards/margins"]).toBeCloseTo(last["rewards/chosen"]! - last["rewards/rejected"]!, 4);
  });

  it("equals one batch in loss, metrics and gradients for unequal micro-batches, within 1e-6", async () => {
    const model = llama();
    const { rows: pairs } = await loadPreferences(preferences(7), tokenizer, {
      maxLength: 64,
      onBadRow: "error",
      isPrecomputed: false,
    });
    // Log-probs of another model give the pairs different weights.
    const other = llama("another");
    const reference = await referenceLogProbs(other, pairs, { batchSize: 3 });
    const options = { ...parseDPOConfig(), random: () => () => 0.5 };
    const mean = (cuts: readonly number[]) => {
      const parts = cuts.map((cut, i) => [cuts[i - 1] ?? 0, cut] as const);
      const { loss, gradients, sums } = accumulate(
        parts.map(([from, to]) => () => {
          const baseline = reference.slice(from, to);
          const numbers = [...baseline.map((one) => one.chosen), ...baseline.map((one) => one.rejected)];
          const batch = collatePairs(pairs.slice(from, to), model);
          return pairGradients(model, batch, Float32Array.from(numbers), options);
        }),
      );
      const all = [loss, ...Object.values(gradients), ...Object.values(sums!)];
      const values = all.flatMap((tensor) => [...tensor.dataSync()].map((value) => value / pairs.length));
      tf.dispose([loss, gradients, sums!]);
      return values;
    };
    const whole = mean([7]);
    for (const cuts of [
      [1, 7],
      [3, 4, 7],
      [1, 2, 3, 4, 5, 6, 7],
    ]) {
      const furthest = mean(cuts).reduce(
        (most, value, i) => Math.max(most, Math.abs(value - whole[i]!) / Math.max(1, Math.abs(whole[i]!))),
        0,
      );
      expect(furthest).toBeLessThan(1e-6);
    }
    // The mean of the micro-batches' means would differ.
    const [one, rest] = [mean([1]), mean([7])].map(([loss]) => loss!);
    expect(Math.abs(7 * one! - rest!)).toBeGreaterThan(1e-3);
    other.dispose();
    model.dispose();
  });

  it("trains an adapter against the model without it, even if the adapter was trained before", async () => {
    const base = llama();
    const own = await weightsOf(base);
    const lora = withLora(base, { rank: 4 });
    const first = await train({ model: lora, reference: "base" });
    expect(first.metrics[0]!["rewards/margins"]).toBeCloseTo(0, 4);
    expect(first.metrics.at(-1)!["rewards/margins"]).toBeGreaterThan(0.5);
    // A trained adapter is ahead of its base, but not of its own copy.
    const again = await train({ model: lora, reference: "base", config: { ...config, maxSteps: 1 } });
    expect(again.metrics[0]!["rewards/margins"]).toBeGreaterThan(0.5);
    const copied = await train({ model: lora, config: { ...config, maxSteps: 1 } });
    expect(copied.metrics[0]!["rewards/margins"]).toBeCloseTo(0, 4);
    expect(await weightsOf(base)).toEqual(own);
    lora.dispose();
    base.dispose();
  });

  it("gives the same result with another model or precomputed log-probs as reference", async () => {
    const dataset = preferences(12);
    const { rows: pairs } = await loadPreferences(dataset, tokenizer, {
      maxLength: 64,
      onBadRow: "error",
      isPrecomputed: false,
    });
    const same = llama();
    const baseline = await referenceLogProbs(same, pairs, { batchSize: 4 });
    const precomputed = dataset.map((row, i) => ({
      ...row,
      ref_chosen_logps: baseline[i]!.chosen,
      ref_rejected_logps: baseline[i]!.rejected,
    }));
    const expected = await train();
    const readings: readonly Partial<DPOTrainerOptions>[] = [
      { reference: same },
      { dataset: precomputed, reference: "precomputed" },
    ];
    for (const reading of readings) {
      const { metrics, weights } = await train(reading);
      expect(metrics).toEqual(expected.metrics);
      expect(weights).toEqual(expected.weights);
    }
    same.dispose();
  });

  it("trains without dropout, unless disableDropout is false", async () => {
    const dropping = async (disableDropout: boolean) => {
      const model = llama("dpo", 0.2);
      const { metrics } = await train({ model, config: { ...config, maxSteps: 2, disableDropout } });
      const modes = model.modes();
      model.dispose();
      return { margin: metrics[0]!["rewards/margins"]!, modes };
    };
    const off = await dropping(true);
    expect(off.margin).toBeCloseTo(0, 4);
    const on = await dropping(false);
    expect(Math.abs(on.margin)).toBeGreaterThan(1e-3);
    expect(off.modes).toBe(on.modes);
  });

  it("reports bad pairs, and trains on the others", async () => {
    const bad = { prompt: "a", chosen: "b", rejected: "" };
    const { result, warnings } = await train({ dataset: [bad, ...preferences(4)] });
    expect(result.badRows).toMatchObject([{ where: "dataset[0]", reason: "empty" }]);
    expect(warnings[0]).toMatch(/^dataset: 1 of 5 rows cannot be trained on and are left out: dataset\[0\]/);
  });

  it("rejects before the first step if it is aborted during the reference", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(train({ signal })).rejects.toThrow("enough");
  });

  it("stops the reference between two batches when aborted", async () => {
    const model = llama();
    const { rows: pairs } = await loadPreferences(preferences(12), tokenizer, {
      maxLength: 64,
      onBadRow: "error",
      isPrecomputed: false,
    });
    const controller = new AbortController();
    setImmediate(() => controller.abort(new Error("enough")));
    const reading = referenceLogProbs(model, pairs, { batchSize: 1, signal: controller.signal });
    await expect(reading).rejects.toThrow("enough");
    model.dispose();
  });

  it.each<[string, object, string]>([
    [
      "validationShare together with validation rows",
      { validation: preferences(2), config: { validationShare: 0.1 } },
      "DPO config.validationShare: got 0.1 together with validation rows",
    ],
    [
      "evalSteps without validation rows",
      { config: { evalSteps: 5 } },
      "DPO config.evalSteps: got 5 without validation rows",
    ],
    ["invalid validation rows", { validation: 5 }, "DPOTrainer options.validation: got 5"],
    [
      "an unknown metric in keepBest",
      { config: { validationShare: 0.1, keepBest: "eval_perplexity" } },
      'DPO config.keepBest: got "eval_perplexity", expected "eval_loss" or "eval_rewards/chosen"',
    ],
    ["an unknown option", { datset: [] }, 'DPOTrainer options.datset: got the unknown option "datset"'],
    ["an invalid reference", { reference: "frozen" }, 'reference: got "frozen", expected "copy", "base"'],
    ["a missing base", { reference: "base" }, 'got "base" for a model without an adapter'],
    [
      "a reference with other tokens",
      { reference: { logits: () => {}, vocabSize: 9, contextLength: 128 } },
      "reference: got a model of 9 tokens, expected 261",
    ],
    [
      "a reference with a shorter context",
      { reference: { logits: () => {}, vocabSize: 261, contextLength: 12 } },
      "reference: got a context of 12 tokens, expected 128 or more",
    ],
    [
      "a reference whose graph takes shorter rows",
      { reference: { logits: () => {}, vocabSize: 261, contextLength: 128, fixedLength: 12 } },
      "reference: got a context of 12 tokens, expected 128 or more",
    ],
    ["no dataset", { dataset: undefined }, "DPOTrainer options.dataset: got nothing"],
  ])("refuses %s", async (_, wrong, message) => {
    const model = llama();
    const options = { model, tokenizer, dataset: preferences(2), runDir: await temporaryFolder() };
    expect(() => new DPOTrainer({ ...options, ...wrong })).toThrow(message);
    model.dispose();
  });
});
