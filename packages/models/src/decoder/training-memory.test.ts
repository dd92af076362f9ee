import * as tf from "@tensorflow/tfjs-core";
import type { LiveDecoder } from "./causal-lm.ts";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { withLora } from "../lora/with-lora.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { tinyConfigs, withTextOptions } from "../testing/tiny-config.test-data.ts";

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

/** Large enough that activations, not the fixed parts, decide the peak. */
const sizes = { vocab_size: 200, num_hidden_layers: 4, max_position_embeddings: 128 };
const wide = { hidden_size: 32, intermediate_size: 96 };
const unusual: Readonly<Record<string, HuggingFaceConfig>> = {
  gpt2: { vocab_size: 200, n_embd: 32, n_layer: 4, n_positions: 128 },
  opt: { ...sizes, hidden_size: 32, ffn_dim: 96 },
};
const pass = { rows: 2, tokens: 96, backend: "wasm" };

/** Returns the bytes of tensors at the peak of a forward and backward pass, above those before it. */
async function measuredPeak(model: LiveDecoder): Promise<number> {
  const count = pass.rows * pass.tokens;
  const before = tf.memory().numBytes;
  const { peakBytes } = await tf.profile(() => {
    const { value, grads } = tf.tidy(() => {
      const ids = tf.tensor2d(
        Int32Array.from({ length: count }, (_, i) => i % 199),
        [pass.rows, pass.tokens],
        "int32",
      );
      const rows = tf.tensor1d(
        Int32Array.from({ length: count }, (_, i) => i),
        "int32",
      );
      return tf.variableGrads(
        () => total(model.trainingLosses(ids, rows, tf.zerosLike(rows), () => () => 0.5)),
        [...model.trainables()],
      );
    });
    tf.dispose([value, grads]);
    return [];
  });
  return peakBytes - before;
}

/** Sums, with a gradient: core alone registers none. */
const total = (losses: tf.Tensor1D): tf.Scalar =>
  tf.customGrad((x) => ({
    value: tf.sum(x as tf.Tensor1D),
    gradFunc: (above: tf.Tensor) => tf.mul(above, tf.onesLike(losses)),
  }))(losses) as tf.Scalar;

describe.each(Object.entries(tinyConfigs))("a training pass of %s", (name, config) => {
  it.each([
    ["full", false],
    ["full", true],
    ["an adapter", false],
    ["an adapter", true],
  ])(
    "of %s, with checkpointing %s, needs what is estimated within a factor of 1.6",
    async (trained, checkpointing) => {
      const base = createCausalLM(withTextOptions(config, unusual[name] ?? { ...sizes, ...wide }), {
        seed: "memory",
      });
      const model = trained === "full" ? base : withLora(base, { rank: 4 });
      const leave = checkpointing ? model.enterActivationCheckpointing() : () => {};
      const peak = await measuredPeak(model);
      const { trainables, activations, workspace } = model.trainingMemory({
        ...pass,
        activationCheckpointing: checkpointing,
      });
      leave();
      if (model !== base) model.dispose();
      base.dispose();
      const ratio = (trainables + activations + workspace) / peak;
      expect(ratio).toBeGreaterThan(0.8);
      expect(ratio).toBeLessThan(1.6);
    },
  );
});
