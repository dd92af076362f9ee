import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { graphBackend } from "../../../kernels/src/graph/graph-function.ts";
import { withLora } from "../lora/with-lora.ts";
import { hasNative, nativeBackend } from "../testing/backends.test-data.ts";
import { expectNearGraph } from "../testing/expect-near-graph.test-data.ts";
import { meanLoss } from "../testing/mean-loss.test-data.ts";
import { tinyConfig, tinyConfigs, unusualFamilies } from "../testing/tiny-config.test-data.ts";

/** Batches of different sizes; the first is longer than the windows. */
const batches = [
  {
    ids: [
      [1, 2, 3, 4, 5, 6],
      [6, 7, 8, 9, 0, 0],
    ],
    labels: [
      [-100, 2, 3, 4, 5, 6],
      [-100, 7, 8, 9, -100, -100],
    ],
  },
  { ids: [[9, 8, 7]], labels: [[-100, -100, 7]] },
];

/** Returns losses and gradients of each batch. */
function train(model: TrainableLM): number[] {
  return batches.flatMap(({ ids, labels }) => {
    const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
    const found = [value, ...Object.values(grads)].flatMap((tensor) => [...tensor.dataSync()]);
    tf.dispose([value, grads]);
    return found;
  });
}

/** Returns the values of a differentiated computation, as in a training step. */
function inStep(model: TrainableLM, run: () => tf.Tensor): number[] {
  let found: number[] = [];
  const sum = tf.customGrad<tf.Scalar>((x) => {
    const { shape } = x as tf.Tensor;
    found = [...(x as tf.Tensor).dataSync()];
    return { value: tf.sum<tf.Scalar>(x as tf.Tensor), gradFunc: () => tf.ones(shape) };
  });
  tf.tidy(() => void tf.variableGrads(() => sum(run()), [...model.trainables()]));
  return found;
}

describe.skipIf(!hasNative)("training by graphs", () => {
  beforeEach(async () => void (await useBackend({ backend: nativeBackend })));
  afterEach(() => void vi.restoreAllMocks());

  /** Computes with separate operations, because no graph can be built. */
  const withoutGraphs = <T>(run: () => T): T => {
    const load = vi.spyOn(graphBackend()!, "loadSavedModelMetaGraph").mockImplementation(() => {
      throw new Error("the disk is full");
    });
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    try {
      return run();
    } finally {
      expect(load).toHaveBeenCalledTimes(1);
      expect(warnings.mock.calls).toEqual([
        [expect.stringContaining("the disk is full"), { code: "PERIODIC_EVAL_GRAPH" }],
      ]);
      load.mockRestore();
      warnings.mockRestore();
    }
  };

  it.each(unusualFamilies)(
    "returns for $family the losses and gradients of separate operations",
    ({ config }) => {
      const make = () => createCausalLM(config, { seed: "a", initStd: 0.3, dropout: 0.4 });
      const [model, other] = [make(), make()];
      const expected = withoutGraphs(() => train(other));
      const before = tf.memory().numTensors;
      const first = train(model);
      expectNearGraph(first, expected);
      expect(train(model)).toEqual(first);
      expect(tf.memory().numTensors).toBe(before);
      model.dispose();
      other.dispose();
    },
  );

  it("trains only an adapter, from its first layer up, and uses the current weights", () => {
    const base = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    const make = () => withLora(base, { rank: 2, dropout: 0.3, layersToTransform: [1] });
    const [model, other] = [make(), make()];
    for (const each of [model, other]) {
      for (const weight of each.trainables()) {
        tf.tidy(() => weight.assign(tf.add(weight, tf.fill(weight.shape, 0.1))));
      }
    }
    const run = vi.spyOn(graphBackend()!, "runSavedModel");
    const first = train(model);
    // Forward and backward for two batches.
    expect(run).toHaveBeenCalledTimes(4);
    const gradients = run.mock.results[1]!.value as tf.Tensor[];
    expect(gradients.length).toBe(model.trainables().length);
    run.mockRestore();
    expectNearGraph(
      first,
      withoutGraphs(() => train(other)),
    );
    for (const each of [model, other]) {
      for (const weight of each.trainables()) tf.tidy(() => weight.assign(tf.mul(weight, 1.5)));
    }
    expectNearGraph(train(model), train(other));
    model.dispose();
    other.dispose();
    base.dispose();
  });

  it("trains an adapter after the layers", () => {
    const base = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    const make = () => withLora(base, { rank: 2, targetModules: ["lm_head"] });
    const [model, other] = [make(), make()];
    const warnings = vi.spyOn(process, "emitWarning");
    const found = train(model);
    expect(warnings).not.toHaveBeenCalled();
    warnings.mockRestore();
    expectNearGraph(
      found,
      withoutGraphs(() => train(other)),
    );
    model.dispose();
    other.dispose();
    base.dispose();
  });

  it.each([tinyConfig, { ...tinyConfigs.gemma2, sliding_window: 2 }])(
    "trains rows of several documents, $model_type",
    (config) => {
      const make = () => createCausalLM(config, { seed: "a", initStd: 0.3 });
      const [model, other] = [make(), make()];
      const starts = Int32Array.of(0, 0, 0, 3, 3, 3, 0, 1, 1, 1, 4, 4);
      const losses = (lm: TrainableLM, documents: readonly [Int32Array?]) =>
        inStep(lm, () => {
          const ids = tf.tensor2d(batches[0]!.ids.flat(), [2, 6], "int32");
          const [rows, targets] = [
            [1, 4, 9],
            [3, 6, 8],
          ].map((list) => tf.tensor1d(list, "int32")) as [tf.Tensor1D, tf.Tensor1D];
          return lm.trainingLosses!(ids, rows, targets, () => () => 0.5, ...documents);
        });
      const packed = losses(model, [starts]);
      expectNearGraph(
        packed,
        withoutGraphs(() => losses(other, [starts])),
      );
      // Only the first scored token is in the first document of its row.
      const whole = losses(model, []);
      expect(packed.map((loss, i) => Math.abs(loss - whole[i]!) < 1e-5)).toEqual([true, false, false]);
      model.dispose();
      other.dispose();
    },
  );

  it("drops values in training only, from the same streams as without graphs", () => {
    const make = () => createCausalLM(tinyConfig, { seed: "a", initStd: 0.3, dropout: 0.5 });
    const [model, other] = [make(), make()];
    const names: string[] = [];
    const random = (name: string) => {
      names.push(name);
      return namedStream(name);
    };
    const logits = (lm: TrainableLM = model) =>
      inStep(lm, () => {
        const ids = tf.tensor2d(batches[0]!.ids.flat(), [2, 6], "int32");
        return lm.trainingLogits(ids, tf.tensor1d([0, 7], "int32"), random);
      });
    const dropped = logits();
    const places = ["embedding", "layer.0.attention", "layer.0.mlp", "layer.1.attention", "layer.1.mlp"];
    expect(names).toEqual(places);
    const leave = model.enterEval();
    expect(logits()).not.toEqual(dropped);
    expect(names).toEqual(places);
    leave();
    expect(logits()).toEqual(dropped);
    names.length = 0;
    expectNearGraph(
      dropped,
      withoutGraphs(() => logits(other)),
    );
    expect(names).toEqual(places);
    model.dispose();
    other.dispose();
  });

  it("builds no graph for a pass without gradients, because it would keep tensors for a backward pass", () => {
    const load = vi.spyOn(graphBackend()!, "loadSavedModelMetaGraph");
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    const { ids, labels } = batches[0]!;
    const loss = tf.tidy(() => meanLoss(model, ids, labels).dataSync()[0]!);
    expect(load).not.toHaveBeenCalled();
    expectNearGraph([loss], [train(model)[0]!]);
    expect(load).toHaveBeenCalledTimes(2);
    model.dispose();
  });

  it("builds two graphs for all sizes, and deletes them with the model", () => {
    const backend = graphBackend()!;
    const [load, remove] = (["loadSavedModelMetaGraph", "deleteSavedModel"] as const).map((method) =>
      vi.spyOn(backend, method),
    );
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    train(model);
    expect(load).toHaveBeenCalledTimes(2);
    model.dispose();
    expect(remove).toHaveBeenCalledTimes(2);
  });
});
