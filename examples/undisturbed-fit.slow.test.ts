// Twin run and negative controls of `model.fit`: with and without callbacks, training must end in the same bits.
import { withSession, type TrainerCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { fingerprintWeights, fitCallbacks, fromLayersModel, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countedStream, disturbing, everything, folder, tokenizer } from "./undisturbed.test-data.ts";

let runs = 0;

describe("model.fit", () => {
  // The questions have at most 50 tokens.
  const length = 64;
  const vocabulary = tokenizer.vocabSize;

  /** One-hot encodes ids. It replaces an embedding, whose gradient has no wasm kernel. */
  class OneHot extends tf.layers.Layer {
    static readonly className = "UndisturbedOneHot";
    override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
      const ids = Array.isArray(inputs) ? inputs[0]! : inputs;
      return tf.tidy(() => tf.cast(tf.oneHot(tf.cast(ids, "int32"), vocabulary), "float32"));
    }
    override computeOutputShape(shape: tf.Shape | tf.Shape[]): tf.Shape {
      return [...(shape as tf.Shape), vocabulary];
    }
  }

  /** Replaces the weights' names by numbers: layers count across the process, so a second model has different names. */
  const numbered = (tensors: readonly tf.Tensor[]) =>
    tensors.map((tensor, i) => ({ name: String(i), read: () => tensor }));

  async function fit(callbacks: (model: tf.LayersModel) => readonly TrainerCallback[]) {
    const native = Math.random;
    const random = countedStream("fit");
    Math.random = random.next; // TensorFlow.js layers draw initial weights, dropout masks and shuffles from it
    try {
      const model = tf.sequential({
        layers: [
          new OneHot({ inputShape: [length] }),
          tf.layers.dense({ units: 8 }),
          tf.layers.dropout({ rate: 0.3 }),
          tf.layers.dense({ units: vocabulary, activation: "softmax" }),
        ],
      });
      model.compile({ optimizer: tf.train.adam(0.01), loss: "categoricalCrossentropy" });
      const ids = Array.from({ length: 24 }, (_, row) =>
        Array.from({ length }, (_, i) => 97 + ((row + i * i) % 26)),
      );
      const x = tf.tensor2d(ids, undefined, "int32");
      const y = tf.tidy(() => tf.cast(tf.oneHot(x, vocabulary), "float32"));
      const lm = fromLayersModel(model);
      const run = join(folder, `fit-${(runs += 1)}`);
      const history = await withSession(
        {
          run,
          maxSteps: null,
          model: inMemory(lm, tokenizer),
          guards: tfjsGuards(lm, model.optimizer),
          callbacks: callbacks(model),
          loggers: [],
          budget: { overheadPercent: null },
        },
        // 24 rows in batches of 4, 10 epochs: 60 steps
        (session) =>
          model.fit(x, y, {
            epochs: 10,
            batchSize: 4,
            verbose: 0,
            shuffle: true,
            callbacks: fitCallbacks(session, model),
          }),
      );
      const slots = (model.optimizer as unknown as { accumulatedFirstMoment: { variable: tf.Variable }[] })
        .accumulatedFirstMoment;
      return {
        run,
        losses: history.history["loss"],
        bits: [
          await fingerprintWeights(numbered(lm.weights!().map(({ read }) => read()))),
          await fingerprintWeights(numbered(slots.map(({ variable }) => variable))),
          random.state(),
        ],
      };
    } finally {
      Math.random = native;
    }
  }

  it("ends in the same bits with every callback and with none", async () => {
    const plain = await fit(() => []);
    const watched = await fit(everything);
    expect(watched.losses).toEqual(plain.losses);
    expect(watched.bits).toEqual(plain.bits);
    const snapshots = (await readRun(watched.run)).phases.flatMap((phase) => phase.snapshots);
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(23).fill("complete"));
  });

  /** A disturbance inside the window, the guards that must report it, and whether it ends training. */
  const disturbances: Record<
    string,
    { guards: readonly string[]; stops: boolean; does: (model: tf.LayersModel) => void }
  > = {
    "changes a weight": {
      guards: ["variables", "weights"],
      stops: true,
      does: (model) =>
        tf.tidy(() => {
          const [kernel, ...others] = model.layers[1]!.getWeights();
          model.layers[1]!.setWeights([tf.mul(kernel!, 1.5), ...others]);
        }),
    },
    "adds one ulp to one weight": {
      guards: ["variables", "weights"],
      stops: true,
      does: (model) =>
        tf.tidy(() => {
          const [kernel, ...others] = model.layers[1]!.getWeights();
          const values = kernel!.dataSync<"float32">().slice();
          new Int32Array(values.buffer)[5]! += 1;
          model.layers[1]!.setWeights([tf.tensor(values, kernel!.shape), ...others]);
        }),
    },
    "leaves a layer in evaluation mode": {
      guards: ["mode"],
      stops: true,
      does: (model) => void ((model.layers[2] as unknown as { rate: number }).rate = 0),
    },
    "leaks a tensor": { guards: ["tensors"], stops: false, does: () => void tf.keep(tf.scalar(1)) },
  };

  it.each(Object.keys(disturbances))("reports the guard that detects an evaluation that %s", async (name) => {
    const { guards, stops, does } = disturbances[name]!;
    const { run, losses } = await fit((model) => [disturbing(() => does(model))]);
    // The schedule counts epochs.
    expect(losses!.length).toBe(stops ? 5 : 10);
    const [snapshot] = (await readRun(run)).phases[0]!.snapshots;
    const broken = snapshot!.receipt.filter(({ intact }) => intact === false).map(({ part }) => part);
    expect(broken).toEqual(expect.arrayContaining([...guards]));
  });

  it("draws the same random numbers if an evaluation or a hook also draws some, and continues if an evaluation throws", async () => {
    const plain = await fit(() => []);
    const drawing: TrainerCallback = { id: "drawing", onStepEnd: () => void Math.random() };
    const watched = await fit(() => [drawing, disturbing(() => void Math.random())]);
    expect(watched.bits).toEqual(plain.bits);
    const fails = () => {
      throw new Error("no reply");
    };
    const { run, bits } = await fit(() => [disturbing(fails)]);
    expect(bits).toEqual(plain.bits);
    const { snapshots } = (await readRun(run)).phases[0]!;
    expect(snapshots.map(({ status, reason }) => [status, reason])).toEqual([
      ["failed", "no reply"],
      ["failed", "no reply"],
    ]);
  });
});
