import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { withLora } from "../lora/with-lora.ts";
import { expectNearGraph } from "../testing/expect-near-graph.test-data.ts";
import { nativeBackend, testedBackends } from "../testing/backends.test-data.ts";
import { tinyConfig, tinyConfigs, unusualFamilies } from "../testing/tiny-config.test-data.ts";

const sum = tf.customGrad<tf.Scalar>((x) => {
  const { shape } = x as tf.Tensor;
  return { value: tf.sum<tf.Scalar>(x as tf.Tensor), gradFunc: () => tf.ones(shape) };
});

interface Batch {
  readonly length?: number;
  readonly documents?: Int32Array;
}

/** Returns loss and gradients of two sequences. */
function step(model: TrainableLM, { length = 6, documents }: Batch = {}): number[] {
  const before = tf.memory().numTensors;
  const { value, grads } = tf.variableGrads(() => {
    // All of these are disposed before the gradient is computed.
    const ids = Array.from({ length: 2 * length }, (_, i) => (i * 7 + 3) % 32);
    const rows = ids.map((_, i) => i).filter((i) => i % length > 0);
    const [at, targets] = [rows, rows.map((i) => ids[i]!)].map((list) => tf.tensor1d(list, "int32"));
    const batch = tf.tensor2d(ids, [2, length], "int32");
    const given = [batch, at as tf.Tensor1D, targets as tf.Tensor1D, namedStream] as const;
    return sum(documents ? model.trainingLosses!(...given, documents) : model.trainingLosses!(...given));
  }, [...model.trainables()]);
  const found = [value, ...Object.values(grads)].flatMap((tensor) => [...tensor.dataSync()]);
  tf.dispose([value, grads]);
  expect(tf.memory().numTensors).toBe(before);
  return found;
}

function checkpointed(model: TrainableLM, run: () => number[]): number[] {
  const leave = model.enterActivationCheckpointing!();
  try {
    return run();
  } finally {
    leave();
  }
}

/** Expects equal bits if both sides run operations; graphs may round differently. */
function expectSame(backend: string, got: readonly number[], expected: readonly number[]): void {
  if (backend !== nativeBackend) return expect(got).toEqual(expected);
  expectNearGraph(got, expected);
}

describe.each(testedBackends)("activation checkpointing on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it.each(unusualFamilies)(
    "returns the same losses and gradients for $family, with the same dropout",
    ({ config }) => {
      const model = createCausalLM(config, { seed: "a", initStd: 0.3, dropout: 0.4 });
      const plain = step(model);
      expectSame(
        backend,
        checkpointed(model, () => step(model)),
        plain,
      );
      // The mode is off again.
      expect(step(model)).toEqual(plain);
      model.dispose();
    },
  );

  it("trains only an adapter, from its first layer up", () => {
    const base = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    const model = withLora(base, { rank: 2, dropout: 0.3, layersToTransform: [1] });
    for (const weight of model.trainables())
      tf.tidy(() => weight.assign(tf.add(weight, tf.fill(weight.shape, 0.1))));
    const plain = step(model);
    expectSame(
      backend,
      checkpointed(model, () => step(model)),
      plain,
    );
    model.dispose();
    base.dispose();
  });

  it("trains rows of several documents", () => {
    const model = createCausalLM({ ...tinyConfigs.gemma2, sliding_window: 2 }, { seed: "a", initStd: 0.3 });
    const documents = Int32Array.of(0, 0, 0, 3, 3, 3, 0, 1, 1, 1, 4, 4);
    const packed = step(model, { documents });
    expectSame(
      backend,
      checkpointed(model, () => step(model, { documents })),
      packed,
    );
    expect(packed).not.toEqual(step(model));
    model.dispose();
  });

  it("draws the same masks if the mode changed before layers run again", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3, dropout: 0.4 });
    const left: TrainableLM = {
      ...model,
      trainingLosses(...given) {
        const losses = model.trainingLosses(...given);
        model.enterEval();
        return losses;
      },
    };
    const plain = step(model);
    expectSame(
      backend,
      checkpointed(model, () => step(left)),
      plain,
    );
    model.dispose();
  });

  it("takes at most a third of the memory for twelve layers", async () => {
    const config = { ...tinyConfig, num_hidden_layers: 12, max_position_embeddings: 64 };
    const model = createCausalLM(config, { seed: "a", initStd: 0.3, dropout: 0.1 });
    const peak = async () => {
      const { numBytes } = tf.memory();
      const { peakBytes } = await tf.profile(() => {
        step(model, { length: 64 });
        return [];
      });
      return peakBytes - numBytes;
    };
    // Without profiling the pass would use a graph.
    step(model, { length: 64 });
    const plain = await peak();
    model.enterActivationCheckpointing();
    const less = await peak();
    expect(less).toBeLessThan(plain / 3);
    model.dispose();
  });
});
