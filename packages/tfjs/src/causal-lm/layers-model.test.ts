import * as tf from "@tensorflow/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import { inMemory } from "../in-memory.ts";
import { fromLayersModel } from "./layers-model.ts";

const vocabulary = 261;
interface Shape {
  readonly length?: number | null;
  readonly activation?: "linear" | "softmax";
  readonly timeDistributed?: boolean;
}
const model = ({ length = null, activation = "linear", timeDistributed = false }: Shape = {}) => {
  const dense = tf.layers.dense({ units: vocabulary, activation });
  return tf.sequential({
    layers: [
      tf.layers.embedding({ inputDim: vocabulary, outputDim: 4, inputShape: [length], name: "embedding" }),
      tf.layers.simpleRNN({ units: 6, returnSequences: true, dropout: 0.25, name: "rnn" }),
      tf.layers.dropout({ rate: 0.5, name: "drop" }),
      timeDistributed ? tf.layers.timeDistributed({ layer: dense }) : dense,
    ],
  });
};

describe("fromLayersModel", () => {
  beforeAll(() => tf.setBackend("cpu"));

  it("returns the logits of predict, without dropout", async () => {
    const layers = model();
    const lm = fromLayersModel(layers, { contextLength: 16 });
    expect(lm).toMatchObject({ vocabSize: vocabulary, contextLength: 16 });
    expect(lm.fixedLength).toBeUndefined();
    const ids = tf.tensor2d([[1, 2, 3]], [1, 3], "int32");
    // A recurrent layer keeps its dropout mask between calls.
    lm.logits(ids).dispose();
    const before = tf.memory().numTensors;
    const logits = lm.logits(ids);
    expect(tf.memory().numTensors).toBe(before + 1);
    expect(logits.dataSync()).toEqual((layers.predict(ids) as tf.Tensor).dataSync());
    layers.dispose();
  });

  it.each([false, true])("takes logarithms of a softmax (time-distributed: %s)", (timeDistributed) => {
    const layers = model({ activation: "softmax", timeDistributed });
    const lm = fromLayersModel(layers, { contextLength: 16 });
    const ids = tf.tensor2d([[1, 2, 3]], [1, 3], "int32");
    const mass = tf.sum(tf.exp(lm.logits(ids)), 2).dataSync();
    for (const sum of mass) expect(sum).toBeCloseTo(1, 5);
    layers.dispose();
  });

  it("scores through inMemory, padded to the input's fixed length", async () => {
    const layers = model({ length: 12 });
    const lm = fromLayersModel(layers);
    expect(lm).toMatchObject({ contextLength: 12, fixedLength: 12 });
    const call = { signal: new AbortController().signal };
    const scored = inMemory(lm, fakeTokenizer());
    const requests = [{ context: { text: "ab" }, continuation: "c" }];
    await scored.logLikelihoods(requests, call);
    const before = tf.memory().numTensors;
    const [score] = await scored.logLikelihoods(requests, call);
    expect(tf.memory().numTensors).toBe(before);
    expect(score!.sumNats).toBeLessThan(0);
    layers.dispose();
  });

  it("reports modes and live weights", () => {
    const layers = model();
    const lm = fromLayersModel(layers, { contextLength: 16 });
    expect(lm.modes!().split("\n")).toEqual([
      "embedding trainable=true",
      "rnn trainable=true dropout=0.25 recurrentDropout=0",
      "drop trainable=true rate=0.5",
      expect.stringMatching(/^dense_\S+ trainable=true$/) as string,
    ]);
    const weights = lm.weights!();
    expect(weights.length).toBe(6);
    expect(weights[0]!.read().shape).toEqual([vocabulary, 4]);
    const zeros = tf.zeros([vocabulary, 4]);
    layers.layers[0]!.setWeights([zeros]);
    expect(
      weights[0]!
        .read()
        .dataSync()
        .every((value) => value === 0),
    ).toBe(true);
    layers.dispose();
  });

  it("throws for other shapes, stateful layers and an unknown length", () => {
    expect(() => fromLayersModel(model())).toThrow(
      /contextLength: got undefined, for an input shape without a length/,
    );
    expect(() => fromLayersModel(model(), { contextLength: Number.NaN })).toThrow(/contextLength: got NaN/);
    expect(() => fromLayersModel(model({ length: 12 }), { contextLength: 13 })).toThrow(
      /contextLength: got 13, expected at most 12, the length of the model's input/,
    );
    expect(() => fromLayersModel(model(), { context: 16 } as object)).toThrow(
      'fromLayersModel options.context: got the unknown option "context"',
    );
    const flat = tf.sequential({ layers: [tf.layers.dense({ units: 2, inputShape: [3] })] });
    expect(() => fromLayersModel(flat)).toThrow(/inputs \[\?, 3\] and outputs \[\?, 2\]/);
    const stateful = tf.sequential({
      layers: [
        tf.layers.embedding({ inputDim: 5, outputDim: 4, batchInputShape: [2, 3] }),
        tf.layers.simpleRNN({ units: 6, returnSequences: true, stateful: true, name: "remembers" }),
      ],
    });
    expect(() => fromLayersModel(stateful)).toThrow(/stateful layer remembers/);
  });
});
