import * as tf from "@tensorflow/tfjs";
import { beforeAll, expect, it } from "vitest";
import { collate } from "../data/collate.ts";
import { loadDataset } from "../data/dataset.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { rows, tokenizer } from "../testing/tiny-run.test-data.ts";
import { accumulate } from "../loop/training-data.ts";
import { batchGradients } from "./sft-trainer.ts";

beforeAll(async () => {
  await tf.setBackend("cpu");
});

it("equals one batch in loss and gradients for unequal micro-batches, within 1e-6, and leaks nothing", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const { rows: all } = await loadDataset(rows(12), tokenizer, { maxLength: 64, onBadRow: "error" });
  const scored = all.reduce((sum, row) => sum + row.scored.length, 0);
  const before = tf.memory().numTensors;
  const mean = (cuts: readonly number[]) => {
    const batches = cuts.map((cut, i) => collate(all.slice(cuts[i - 1] ?? 0, cut)));
    const { loss, gradients } = accumulate(
      batches.map((batch) => () => batchGradients(model, batch, () => () => 0.5)),
    );
    expect(tf.memory().numTensors).toBe(before + 3);
    const flat = Object.values(gradients).flatMap((gradient) =>
      [...gradient.dataSync()].map((value) => value / scored),
    );
    const found = { loss: loss.dataSync()[0]! / scored, flat };
    tf.dispose([loss, gradients]);
    return found;
  };
  const whole = mean([12]);
  for (const cuts of [[1, 12], [5, 6, 12], Array.from({ length: 12 }, (_, i) => i + 1)]) {
    const parts = mean(cuts);
    expect(Math.abs(parts.loss - whole.loss)).toBeLessThan(1e-6);
    expect(Math.max(...parts.flat.map((value, i) => Math.abs(value - whole.flat[i]!)))).toBeLessThan(1e-6);
  }
  // The mean of the micro-batches' means would differ, because rows have different lengths.
  expect(new Set(all.map((row) => row.scored.length)).size).toBeGreaterThan(3);
  model.dispose();
});
