import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { meanLoss, twoRows } from "../testing/mean-loss.test-data.ts";
import { tinyConfigs, unusualFamilies } from "../testing/tiny-config.test-data.ts";

/** Further optional features of each family, and windows shorter than a sequence of six tokens. */
const options: Readonly<Partial<Record<keyof typeof tinyConfigs, HuggingFaceConfig>>> = {
  llama: { attention_bias: true, mlp_bias: true },
  qwen2: { use_sliding_window: true, sliding_window: 2, max_window_layers: 1 },
  gpt2: { scale_attn_by_inverse_layer_idx: true },
  phi3: {
    original_max_position_embeddings: 4,
    rope_scaling: { type: "longrope", short_factor: [1, 1], long_factor: [2, 3] },
  },
  seed_oss: { attention_out_bias: true, mlp_bias: true },
  granite: { attention_bias: true, mlp_bias: true },
};
const cases = unusualFamilies.map(({ family, config }) => {
  return { family, config: { ...config, pad_token_id: null, ...options[family as keyof typeof options] } };
});

const { ids, labels } = twoRows;

describe.each(["cpu", "wasm"])(
  "gradients of whole models on %s agree with central differences",
  (backend) => {
    beforeAll(async () => void (await useBackend({ backend })));

    it.each(cases)("has the gradients of finite differences for $family", ({ config }) => {
      const model = createCausalLM(config, { seed: "a", initStd: 0.4 });
      const before = tf.memory().numTensors;
      const loss = () => tf.tidy(() => meanLoss(model, ids, labels).dataSync()[0]!);
      const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
      model.trainables().forEach((variable, salt) => {
        const found = grads[variable.name]!.dataSync() as Float32Array;
        const direction: Float32Array = found.map((_, i) => Math.sin(1 + 12.9898 * i + 7.31 * salt));
        const expected = slopeAlong(model, salt, direction, loss);
        const slope = found.reduce((sum, x, i) => sum + x * direction[i]!, 0);
        // A loss of about 4 with 24 bits has an error of 2e-7, over 2·step 1e-4; the rest is curvature.
        expect(Math.abs(slope - expected), variable.name).toBeLessThan(2e-3 + 5e-3 * Math.abs(expected));
      });
      tf.dispose([value, grads]);
      expect(tf.memory().numTensors).toBe(before);
      model.dispose();
    });
  },
);

it("gives the padding row no gradient from lookups, like torch", async () => {
  await useBackend({ backend: "cpu" });
  const rowNorms = (config: HuggingFaceConfig) => {
    const [model, other] = [config, tinyConfigs.llama].map((json) =>
      createCausalLM(json, { seed: "a", initStd: 0.4 }),
    ) as [CheckpointLM, CheckpointLM];
    // The padding row of a created model is 0, so both models get the same weights.
    model.trainables().forEach((variable, index) => variable.assign(other.trainables()[index]!));
    const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
    const norms = tf.tidy(() => [...tf.sum(tf.square(grads[model.trainables()[0]!.name]!), 1).dataSync()]);
    tf.dispose([value, grads]);
    for (const each of [model, other]) each.dispose();
    return norms;
  };
  const [without, padded] = [
    rowNorms(tinyConfigs.llama),
    rowNorms({ ...tinyConfigs.llama, pad_token_id: 4 }),
  ];
  expect(padded.map((norm, row) => (row === 4 ? norm === 0 : norm === without[row]))).not.toContain(false);
  expect(without[4]).toBeGreaterThan(0);
});

/** Returns the derivative of the loss by one variable along a direction, from two passes. */
function slopeAlong(
  model: CheckpointLM,
  index: number,
  direction: ArrayLike<number>,
  loss: () => number,
): number {
  const variable = model.trainables()[index]!;
  const values = Float32Array.from(variable.dataSync());
  const step = 1e-3;
  const lossAt = (by: number) => {
    const moved = tf.tensor(
      values.map((value, i) => value + by * direction[i]!),
      variable.shape,
    );
    variable.assign(moved);
    moved.dispose();
    return loss();
  };
  const slope = (lossAt(step) - lossAt(-step)) / (2 * step);
  lossAt(0);
  return slope;
}
