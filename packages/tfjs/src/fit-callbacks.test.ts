import "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mathRandomGuard } from "@periodic-eval/core/session";
import { namedStream } from "@periodic-eval/core/random";
import type { Session, StepEnd } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { fitCallbacks, type FitCallbacks } from "./fit-callbacks.ts";
import { tfjsGuards } from "./guards/guards.ts";
import { inMemory } from "./in-memory.ts";
import { fromLayersModel } from "./causal-lm/layers-model.ts";
import { optimizerState } from "./guards/optimizer-slots.ts";

interface StubOptions {
  readonly onStepEnd?: (step: number) => Promise<void> | void;
  readonly stopAt?: number;
  readonly saveAt?: number;
  readonly brokenReceipt?: string;
  /** Broken by the work of `save`. */
  readonly brokenBySave?: string;
}

/** A session that records its calls. */
function stubSession({
  onStepEnd,
  stopAt,
  saveAt,
  brokenReceipt,
  brokenBySave,
}: StubOptions = {}): Session & {
  readonly calls: string[];
  readonly ends: StepEnd[];
  readonly logged: Readonly<Record<string, number>>[];
} {
  const calls: string[] = [];
  const ends: StepEnd[] = [];
  const logged: Readonly<Record<string, number>>[] = [];
  let broken = brokenReceipt ?? null;
  const control = () => ({
    stop: ends.length === stopAt ? "enough" : null,
    save: ends.length === saveAt ? "best" : null,
  });
  return {
    calls,
    ends,
    logged,
    phase: "train",
    lost: null,
    conditionStop: null,
    cleanStep: null,
    get brokenReceipt() {
      return broken;
    },
    get progress() {
      return { step: ends.length, maxSteps: null, epoch: 0, elapsedSeconds: 0, ended: false };
    },
    async begin(known) {
      calls.push(`begin ${known?.maxSteps}`);
      return control();
    },
    async stepBegin() {
      calls.push("stepBegin");
    },
    async log(metrics) {
      logged.push(metrics);
    },
    async stepEnd(at = {}) {
      ends.push(at);
      calls.push(`stepEnd ${at.epoch} of ${at.maxSteps}`);
      await onStepEnd?.(ends.length);
      return control();
    },
    async save() {
      broken ??= brokenBySave ?? null;
      return { phase: "train", progress: this.progress, runStepOffset: 0, callbacks: {}, windowSeconds: 0 };
    },
    async testConditions() {},
    async end() {
      calls.push("end");
      return control();
    },
    async fail() {},
    async close() {},
  };
}

const tokens = 6;
const vocabulary = 261;
const dataset = () => {
  const random = namedStream("data");
  const ids = Array.from({ length: 10 }, () =>
    Array.from({ length: tokens }, () => Math.floor(random() * 256)),
  );
  const x = tf.tensor2d(ids, undefined, "int32");
  const y = tf.tidy(() => tf.cast(tf.oneHot(x, vocabulary), "float32"));
  return { x, y };
};
/** Replaces an embedding, for which the wasm backend has no gradient. */
class OneHot extends tf.layers.Layer {
  static readonly className = "OneHot";
  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const ids = Array.isArray(inputs) ? inputs[0]! : inputs;
    return tf.tidy(() => tf.cast(tf.oneHot(tf.cast(ids, "int32"), vocabulary), "float32"));
  }
  override computeOutputShape(shape: tf.Shape | tf.Shape[]): tf.Shape {
    return [...(shape as tf.Shape), vocabulary];
  }
}
const languageModel = () => {
  const model = tf.sequential({
    layers: [
      new OneHot({ inputShape: [tokens] }),
      tf.layers.dense({ units: 4 }),
      tf.layers.dropout({ rate: 0.3 }),
      tf.layers.dense({ units: vocabulary, activation: "softmax" }),
    ],
  });
  model.compile({ optimizer: tf.train.adam(0.01), loss: "categoricalCrossentropy" });
  return model;
};

// TensorFlow.js draws initial weights, dropout masks and shuffles from Math.random: a seeded one makes two runs equal.
const native = Math.random;
beforeEach(async () => {
  await tf.setBackend("cpu");
  Math.random = namedStream("training");
});
afterEach(() => {
  Math.random = native;
});

describe("fitCallbacks", () => {
  it("begins with the steps of the whole fit and ends steps with metrics and fractions of epochs", async () => {
    const model = languageModel();
    const session = stubSession();
    const { x, y } = dataset();
    await model.fit(x, y, { epochs: 2, batchSize: 4, verbose: 0, callbacks: fitCallbacks(session, model) });
    // 10 rows in batches of 4: 3 steps per epoch, 6 in total.
    expect(session.calls.filter((line) => line !== "stepBegin")).toEqual([
      "begin 6",
      ...[1 / 3, 2 / 3, 1, 1 + 1 / 3, 1 + 2 / 3, 2].map((epoch) => `stepEnd ${epoch} of 6`),
      "end",
    ]);
    expect(session.calls.filter((line) => line === "stepBegin").length).toBe(6);
    for (const { metrics } of session.ends) expect(metrics).toEqual({ loss: expect.any(Number) as number });
  });

  it("counts from the initial epoch", async () => {
    const model = languageModel();
    const session = stubSession();
    const { x, y } = dataset();
    await model.fit(x, y, {
      epochs: 3,
      initialEpoch: 2,
      batchSize: 5,
      verbose: 0,
      callbacks: fitCallbacks(session, model),
    });
    expect(session.calls.filter((line) => line !== "stepBegin")).toEqual([
      "begin 2",
      "stepEnd 0.5 of 2",
      "stepEnd 1 of 2",
      "end",
    ]);
  });

  it("learns the number of steps of a dataset of unknown size after one epoch", async () => {
    const model = languageModel();
    const session = stubSession();
    const { x, y } = dataset();
    const batches = tf.data.generator(function* () {
      for (let at = 0; at < 10; at += 5) yield { xs: tf.slice(x, at, 5), ys: tf.slice(y, at, 5) };
    });
    await model.fitDataset(batches, { epochs: 2, verbose: 0, callbacks: fitCallbacks(session, model) });
    expect(session.calls.filter((line) => line !== "stepBegin")).toEqual([
      "begin null",
      "stepEnd 0 of null",
      "stepEnd 0 of null",
      "stepEnd 1.5 of 4",
      "stepEnd 2 of 4",
      "end",
    ]);
  });

  it.each([
    [2, 2],
    // The layers library resets its flag after onTrainBegin and reads it after a batch, so one step is still taken.
    [0, 1],
  ])("stops training when the session requests it after step %i", async (stopAt, steps) => {
    const model = languageModel();
    const session = stubSession({ stopAt });
    const { x, y } = dataset();
    await model.fit(x, y, { epochs: 5, batchSize: 5, verbose: 0, callbacks: fitCallbacks(session, model) });
    expect(session.ends.length).toBe(steps);
    expect(session.calls.at(-1)).toBe("end");
  });

  it.each(["before", "after"])(
    "measures until tf.callbacks.earlyStopping %s it in one array stops training",
    async (order) => {
      for (const adapt of [(one: FitCallbacks) => one, (one: FitCallbacks) => new tf.CustomCallback(one)]) {
        const model = languageModel();
        const session = stubSession();
        const { x, y } = dataset();
        const early = tf.callbacks.earlyStopping({ monitor: "loss", mode: "max" }); // stops when the loss falls
        const ours = adapt(fitCallbacks(session, model));
        const callbacks = (order === "before" ? [early, ours] : [ours, early]) as tf.CustomCallback[];
        await model.fit(x, y, { epochs: 5, batchSize: 5, verbose: 0, callbacks });
        // 2 steps per epoch; the loss falls after the second of five epochs.
        expect(session.calls.filter((line) => line !== "stepBegin")).toEqual([
          "begin 10",
          ...[0.5, 1, 1.5, 2].map((epoch) => `stepEnd ${epoch} of 10`),
          "end",
        ]);
        for (const { metrics } of session.ends)
          expect(metrics).toEqual({ loss: expect.any(Number) as number });
      }
    },
  );

  it.each([
    ["fit", "a sequential model"],
    ["fit", "a functional model"],
    ["fitDataset", "a sequential model"],
    ["fitDataset", "a functional model"],
  ])("stands before tf.callbacks.earlyStopping in the call of %s of %s", async (name, kind) => {
    const sequential = languageModel();
    const model =
      kind === "a functional model"
        ? tf.model({ inputs: sequential.inputs, outputs: sequential.outputs })
        : sequential;
    if (model !== sequential) {
      model.compile({ optimizer: "sgd", loss: "categoricalCrossentropy" });
      fromLayersModel(model);
    }
    const session = stubSession();
    const { x, y } = dataset();
    const early = () => tf.callbacks.earlyStopping({ monitor: "val_loss", mode: "max" });
    const ours = () => fitCallbacks(session, model) as unknown as tf.EarlyStopping;
    // The callbacks are made after `fit` is looked up, as written here.
    if (name === "fit")
      await model.fit(x, y, {
        epochs: 5,
        batchSize: 5,
        verbose: 0,
        validationData: [x, y],
        callbacks: [ours(), early()],
      });
    else
      await model.fitDataset(tf.data.array([{ xs: x, ys: y }]), {
        epochs: 5,
        verbose: 0,
        validationData: [x, y],
        callbacks: [ours(), early()],
      });
    expect(session.ends).toHaveLength(name === "fit" ? 4 : 2);
    expect(session.calls.at(-1)).toBe("end");
  });

  it("refuses an array with a plain object, itself and a tf.Callback before the first batch", async () => {
    const model = languageModel();
    const session = stubSession();
    const { x, y } = dataset();
    const plain = { onEpochEnd: () => undefined } as unknown as FitCallbacks;
    const callbacks = [
      plain,
      fitCallbacks(session, model),
      tf.callbacks.earlyStopping(),
    ] as tf.EarlyStopping[];
    await expect(model.fit(x, y, { verbose: 0, callbacks })).rejects.toThrow(
      /model\.fit options\.callbacks: got an array with a plain object .* Wrap the plain object: new tf\.CustomCallback/,
    );
    expect(session.calls).toEqual([]);
  });

  it("stands beside a plain object", async () => {
    const model = languageModel();
    const session = stubSession();
    const { x, y } = dataset();
    const epochs: number[] = [];
    const plain: tf.CustomCallbackArgs = { onEpochEnd: (epoch) => void epochs.push(epoch) };
    await model.fit(x, y, { verbose: 0, epochs: 2, callbacks: [fitCallbacks(session, model), plain] });
    expect(epochs).toEqual([0, 1]);
    expect(session.calls.at(-1)).toBe("end");
  });

  it.each(["alone", "after a tf.Callback"])(
    "logs the validation loss once an epoch, if it is %s",
    async (where) => {
      const model = languageModel();
      const session = stubSession();
      const { x, y } = dataset();
      const ours = fitCallbacks(session, model);
      const callbacks = where === "alone" ? ours : [tf.callbacks.earlyStopping({ patience: 5 }), ours];
      const options = { epochs: 2, batchSize: 5, verbose: 0, callbacks } as const;
      const { history } = await model.fit(x, y, { ...options, validationData: [x, y] });
      expect(session.logged).toEqual(history["val_loss"]!.map((loss) => ({ val_loss: loss })));
      expect(session.logged).toHaveLength(2);
    },
  );

  it("passes the state to save when a callback requests a checkpoint", async () => {
    const model = languageModel();
    const session = stubSession({ saveAt: 1 });
    const saved: number[] = [];
    const { x, y } = dataset();
    const save = ({ progress }: { progress: { step: number } }) => void saved.push(progress.step);
    await model.fit(x, y, { batchSize: 5, verbose: 0, callbacks: fitCallbacks(session, model, { save }) });
    expect(saved).toEqual([1]);
  });

  it.each(["brokenReceipt", "brokenBySave"])("does not save disturbed weights: %s", async (when) => {
    const model = languageModel();
    const session = stubSession({ saveAt: 1, [when]: 'guard "weights"' });
    const { x, y } = dataset();
    const saved: string[] = [];
    const save = () => void saved.push("weights");
    await model.fit(x, y, { batchSize: 5, verbose: 0, callbacks: fitCallbacks(session, model, { save }) });
    expect(saved).toEqual([]);
  });
});

it("throws for an unknown option", () => {
  const save = { onSave: () => undefined } as object;
  expect(() => fitCallbacks(stubSession(), { stopTraining: false }, save)).toThrow(
    'fitCallbacks options.onSave: got the unknown option "onSave", expected one of save',
  );
});

describe.each(["cpu", "wasm"])("a twin run on %s", (backend) => {
  it("ends with bit-identical weights with and without measurements at every step", async () => {
    await tf.setBackend(backend);
    const train = async (measure: boolean) => {
      Math.random = namedStream("training");
      const model = languageModel();
      const { x, y } = dataset();
      const lm = fromLayersModel(model);
      const inspected = inMemory(lm, fakeTokenizer());
      const call = { signal: new AbortController().signal };
      const evidence: (boolean | null)[] = [];
      const onStepEnd = async (step: number) => {
        const guards = [...tfjsGuards(lm, model.optimizer), mathRandomGuard()];
        const entered = [];
        for (const guard of guards) entered.push(await guard.enter({ seed: `${step}` }));
        await inspected.logLikelihoods([{ context: { text: "ab" }, continuation: "cd" }], call);
        await inspected.generate(
          [{ prompt: { text: "ab" }, sampling: { maxNewTokens: 3, temperature: 1, seed: "s" } }],
          call,
        );
        Math.random();
        for (const guard of entered.toReversed()) evidence.push((await guard.leave()).intact);
      };
      const losses: unknown[] = [];
      const keep: tf.CustomCallbackArgs = { onBatchEnd: (_, logs) => void losses.push(logs!["loss"]) };
      const callbacks = measure ? [keep, fitCallbacks(stubSession({ onStepEnd }), model)] : [keep];
      await model.fit(x, y, { epochs: 4, batchSize: 4, shuffle: true, verbose: 0, callbacks });
      const state = [...lm.weights!(), ...optimizerState(model.optimizer).slots].map((weight) =>
        weight.read().dataSync().slice(),
      );
      return { losses, state, evidence };
    };
    const without = await train(false);
    const measured = await train(true);
    expect(measured.losses).toEqual(without.losses);
    expect(measured.state).toEqual(without.state);
    // 12 steps and six guards: a layers model has no training mode to leave.
    expect(measured.evidence).toEqual(Array<boolean>(12 * 6).fill(true));
    expect(new Set(without.losses).size).toBe(12);
  });
});
