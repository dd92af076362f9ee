import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { withLora } from "../lora/with-lora.ts";
import { crossEntropy } from "../testing/mean-loss.test-data.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";

/** Windows and an original context that only some of the documents exceed. */
const options = {
  mistral: { sliding_window: 2 },
  qwen2: { use_sliding_window: true, sliding_window: 3, max_window_layers: 1 },
  gemma2: { sliding_window: 2, attn_logit_softcapping: 0.5, final_logit_softcapping: 1 },
  gemma3_text: { sliding_window: 2, sliding_window_pattern: 2 },
  phi3: {
    original_max_position_embeddings: 4,
    rope_scaling: { type: "longrope", short_factor: [1, 1], long_factor: [2, 3] },
  },
  smollm3: { no_rope_layer_interval: 2 },
};
const cases = Object.entries(tinyConfigs).map(([family, config]) => {
  return { family, config: { ...config, ...options[family as keyof typeof options] } };
});

/** Two rows of documents; the second is padded to the first's ten tokens. */
const packed = [
  [
    [1, 2, 3, 4, 5, 6],
    [7, 8, 9, 10],
  ],
  [[11], [12, 13], [14, 15, 16, 17, 18]],
];

interface Input {
  readonly rows: readonly (readonly (readonly number[])[])[];
  readonly isPacked: boolean;
}

/** Returns the sum of −log p of every token of a document except its first, and its gradients by name. */
function lossOf(model: TrainableLM, { rows, isPacked }: Input) {
  const length = Math.max(...rows.map((documents) => documents.flat().length));
  const ids = new Int32Array(rows.length * length);
  const starts = new Int32Array(rows.length * length);
  const scored: number[] = [];
  const targets: number[] = [];
  rows.forEach((documents, row) => {
    let place = 0;
    for (const document of documents) {
      ids.set(document, row * length + place);
      starts.fill(place, row * length + place, (row + 1) * length);
      document.slice(1).forEach((target, i) => {
        scored.push(row * length + place + i);
        targets.push(target);
      });
      place += document.length;
    }
  });
  const found = tf.variableGrads(() => {
    const logits = model.trainingLogits(
      tf.tensor2d(ids, [rows.length, length], "int32"),
      tf.tensor1d(scored, "int32"),
      () => () => 0.5,
      ...(isPacked ? [starts] : []),
    );
    return crossEntropy(logits, tf.tensor1d(targets, "int32"));
  }, [...model.trainables()]);
  const sumOf = (mean: tf.Tensor) => [...mean.dataSync()].map((value) => value * targets.length);
  const [loss] = sumOf(found.value) as [number];
  const gradients = model.trainables().map(({ name }) => sumOf(found.grads[name]!));
  tf.dispose([found.value, found.grads]);
  return { loss, gradients };
}

/** Returns the same for documents in separate rows, summed. */
function sumOfEach(model: TrainableLM) {
  const each = packed
    .flat()
    .filter((document) => document.length > 1)
    .map((document) => lossOf(model, { rows: [[document]], isPacked: false }));
  return {
    loss: each.reduce((sum, { loss }) => sum + loss, 0),
    gradients: each[0]!.gradients.map((values, variable) =>
      values.map((_, i) => each.reduce((sum, { gradients }) => sum + gradients[variable]![i]!, 0)),
    ),
  };
}

function expectAlike(model: TrainableLM) {
  const together = lossOf(model, { rows: packed, isPacked: true });
  const apart = sumOfEach(model);
  expect(Math.abs(together.loss / apart.loss - 1)).toBeLessThan(1e-5);
  const largest = Math.max(...apart.gradients.flat().map(Math.abs));
  const off = together.gradients.flatMap((values, variable) =>
    values.map((value, i) => Math.abs(value - apart.gradients[variable]![i]!)),
  );
  expect(Math.max(...off) / largest).toBeLessThan(1e-5);
}

describe.each(testedBackends)("documents in one row on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it.each(cases)("have the loss and gradients of documents in separate rows: $family", ({ config }) => {
    const model = createCausalLM(config, { seed: "a", initStd: 0.4 });
    const before = tf.memory().numTensors;
    expectAlike(model);
    expect(tf.memory().numTensors).toBe(before);
    // Without documentStarts the result differs, so masks and positions cause the equality above.
    const mixed = lossOf(model, { rows: packed, isPacked: false }).loss;
    expect(Math.abs(mixed / sumOfEach(model).loss - 1)).toBeGreaterThan(1e-4);
    model.dispose();
  });

  it("have the same loss and gradients with an adapter", () => {
    const base = createCausalLM(tinyConfigs.llama, { seed: "a", initStd: 0.4 });
    const model = withLora(base, { rank: 2, seed: "b" });
    tf.tidy(() => {
      for (const each of model.trainables()) each.assign(tf.fill(each.shape, 0.1));
    });
    expectAlike(model);
    model.dispose();
    base.dispose();
  });
});
