import * as tf from "@tensorflow/tfjs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EnteredGuard, Guard, Evidence } from "@periodic-eval/core";
import { evaluationMode } from "../causal-lm/causal-lm.ts";
import { tinyLM, type TinyLM } from "../causal-lm/tiny-lm.test-data.ts";
import { fingerprintWeights } from "./fingerprint.ts";
import { tfjsGuards } from "./guards.ts";
import { optimizerState } from "./optimizer-slots.ts";

import "@tensorflow/tfjs-backend-wasm";

/** Enters guards in order, runs, leaves them in reverse order. */
async function around(guards: readonly Guard[], run: () => unknown): Promise<readonly Evidence[]> {
  const entered = [];
  for (const guard of guards) entered.push(await guard.enter({ seed: "s" }));
  await run();
  const evidence: Evidence[] = [];
  for (const guard of entered.toReversed()) evidence.push(await guard.leave());
  return evidence;
}
const broken = (evidence: readonly Evidence[]) =>
  evidence.filter(({ intact }) => intact === false).map(({ part }) => part);
const nextFloat = (value: number) => {
  const bits = new Int32Array(Float32Array.of(value).buffer);
  bits[0]! += 1;
  return new Float32Array(bits.buffer)[0]!;
};
/** Assigns a copy of a variable's values with entry `at` changed. */
function change(variable: tf.Variable<tf.Rank.R2>, at: number, by: (value: number) => number) {
  const values = variable.dataSync().slice();
  values[at] = by(values[at]!);
  const changed = tf.tensor2d(values, variable.shape);
  variable.assign(changed);
  changed.dispose();
}

describe.each(["cpu", "wasm"])("guards on %s", (backend) => {
  let lm: TinyLM;
  let adam: tf.AdamOptimizer;
  let guards: readonly Guard[];
  const step = () =>
    adam.minimize(() =>
      tf.tidy(() => tf.sum(tf.square(tf.matMul(tf.slice(lm.embedding, 0, [4, 8]), lm.head)))),
    );
  beforeEach(async () => {
    await tf.setBackend(backend);
    lm = tinyLM({ vocabSize: 12 });
    adam = tf.train.adam(0.01);
    step();
    lm.training = true;
    guards = tfjsGuards(lm, adam);
  });
  afterEach(() => {
    lm.dispose();
    adam.dispose();
  });

  it("come in order, tensors outermost, and report no change", async () => {
    expect(guards.map(({ name, around: where = "windows" }) => `${name} ${where}`)).toEqual([
      "tensors hooks",
      "variables hooks",
      "mode hooks",
      "weights windows",
      "optimizer windows",
      "evaluation-mode windows",
    ]);
    const before = tf.memory().numTensors;
    const seen: boolean[] = [];
    const evidence = await around(guards, () => seen.push(lm.training));
    expect(seen).toEqual([false]);
    expect(lm.training).toBe(true);
    expect(evidence.map(({ intact }) => intact)).toEqual([true, true, true, true, true, true]);
    expect(tf.memory().numTensors).toBe(before);
  });

  it("are entered and left without a promise around hooks", () => {
    for (const guard of guards.filter(({ around: where }) => where === "hooks")) {
      const entered = guard.enter({ seed: "s" });
      expect(entered).not.toBeInstanceOf(Promise);
      expect((entered as EnteredGuard).leave()).not.toBeInstanceOf(Promise);
    }
  });

  it("reuse the last fingerprint before the next measurement, and still detect a change", async () => {
    let reads = 0;
    const counting = { ...lm, weights: () => (reads++, lm.weights()) };
    const guard = tfjsGuards(counting).find(({ name }) => name === "weights")!;
    const first = await (await guard.enter({ seed: "s" })).leave();
    expect(reads).toBe(2);
    const next = await guard.enter({ seed: "s", justLeft: first });
    expect(next.before).toBe(first.after);
    expect(reads).toBe(2);
    change(lm.head, 50, nextFloat);
    expect(await next.leave()).toMatchObject({ before: first.after, intact: false });
  });

  it("detect one ulp in one weight and name the variable", async () => {
    const evidence = await around(guards, () => change(lm.head, 50, nextFloat));
    expect(broken(evidence)).toEqual(["weights", "variables"]);
    expect(evidence.find(({ part }) => part === "variables")!.after).toMatch(/1 of them assigned: head/);
  });

  it("detect two swapped weights", async () => {
    const swapped = tinyLM({ vocabSize: 8 });
    const evidence = await around(tfjsGuards(swapped), () => {
      const first = tf.tidy(() => tf.clone(swapped.embedding));
      swapped.embedding.assign(swapped.head);
      swapped.head.assign(first);
      first.dispose();
    });
    expect(broken(evidence)).toEqual(["weights", "variables"]);
    swapped.dispose();
  });

  it("detect an optimizer step without a weight change, and a changed learning rate", async () => {
    const evidence = await around(guards, () => {
      const kept = [lm.embedding, lm.head].map(
        (variable) => [variable, variable.dataSync().slice()] as const,
      );
      step();
      for (const [variable, values] of kept)
        tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
    });
    expect(broken(evidence)).toEqual(["optimizer", "mode", "variables"]);
    const rate = await around(guards, () => {
      (adam as unknown as { learningRate: number }).learningRate = 0.02;
    });
    expect(broken(rate)).toEqual(["optimizer", "mode"]);
    expect(rate.find(({ part }) => part === "mode")).toMatchObject({
      before: "learningRate=0.01",
      after: "learningRate=0.02",
    });
  });

  describe("around hooks", () => {
    const seenBy = (run: () => unknown) =>
      around(
        guards.filter((guard) => guard.around === "hooks"),
        run,
      );

    it("detect another backend, and name both", async () => {
      const other = backend === "cpu" ? "wasm" : "cpu";
      const evidence = await seenBy(() => tf.setBackend(other));
      expect(broken(evidence)).toEqual(["mode"]);
      expect(evidence.find(({ part }) => part === "mode")).toMatchObject({
        before: `backend=${backend}`,
        after: `backend=${other}`,
      });
    });

    it("detect a changed setting of the optimizer", async () => {
      const evidence = await seenBy(() => Object.assign(adam, { beta1: 0.5 }));
      expect(broken(evidence)).toEqual(["mode"]);
    });

    it("detect a weight that training no longer changes", async () => {
      const evidence = await seenBy(() => Object.assign(lm.head, { trainable: false }));
      expect(broken(evidence)).toEqual(["mode", "variables"]);
      const { after } = evidence.find(({ part }) => part === "variables")!;
      expect(after).toMatch(/variables, \d+ of them trainable$/);
    });

    it("detect a disposed weight and name it", async () => {
      const evidence = await seenBy(() => lm.head.dispose());
      expect(broken(evidence.filter(({ advisory }) => advisory !== true))).toEqual(["variables"]);
      expect(evidence.find(({ part }) => part === "variables")!.after).toContain(
        "1 of them assigned or disposed: head",
      );
    });
  });

  it("detect a layer left in evaluation mode and name it", async () => {
    const hooks = guards.filter((guard) => guard.around === "hooks");
    const evidence = await around(hooks, () => {
      lm.training = false;
    });
    expect(broken(evidence)).toEqual(["mode"]);
    expect(evidence.find(({ part }) => part === "mode")).toMatchObject({
      before: "training=true",
      after: "training=false",
    });
  });

  it("detect a leaked tensor as advisory", async () => {
    let leaked: tf.Tensor | null = null;
    const evidence = await around(guards, () => {
      leaked = tf.zeros([3]);
    });
    expect(broken(evidence)).toEqual(["tensors"]);
    expect(evidence.find(({ part }) => part === "tensors")!.advisory).toBe(true);
    tf.dispose(leaked!);
  });

  it("detect swaps and steps with approximate fingerprints", async () => {
    const approximate = tfjsGuards(lm, adam, { fingerprint: "approximate" });
    const before = tf.memory().numTensors;
    const quiet = await around(approximate, () => null);
    expect(broken(quiet)).toEqual([]);
    expect(quiet.find(({ part }) => part === "weights")).toMatchObject({
      note: /on the device/,
      before: /^approximate:/,
    });
    expect(tf.memory().numTensors).toBe(before);
    const swappedEntries = await around(approximate, () => {
      const [a, b] = lm.head.dataSync();
      change(lm.head, 0, () => b!);
      change(lm.head, 1, () => a!);
    });
    expect(broken(swappedEntries)).toEqual(["weights", "variables"]);
    expect(broken(await around(approximate, step))).toEqual(["optimizer", "weights", "mode", "variables"]);
  });
});

describe("a measurement that enters evaluation mode", () => {
  /** Two parts with a mode each, as in a model with a frozen part. */
  const twoParts = () => {
    const lm = tinyLM({ vocabSize: 8 });
    const [encoder, decoder] = [evaluationMode(), evaluationMode()];
    const enterEval = () => {
      const leaves = [encoder.enter(), decoder.enter()];
      return () => leaves.forEach((leave) => leave());
    };
    const modes = () => `encoder: ${encoder.describe()}\ndecoder: ${decoder.describe()}`;
    return { lm: { ...lm, enterEval, modes }, decoder };
  };
  const inWindow = async (measure: (parts: ReturnType<typeof twoParts>) => unknown) => {
    await tf.setBackend("cpu");
    const parts = twoParts();
    const evidence = await around(tfjsGuards(parts.lm), () => measure(parts));
    expect(parts.lm.modes()).toBe("encoder: training\ndecoder: training");
    parts.lm.dispose();
    return evidence;
  };

  it("and does not leave it is reported with its part, and training mode is restored", async () => {
    const evidence = await inWindow(({ decoder }) => void decoder.enter());
    expect(broken(evidence)).toEqual(["evaluation-mode"]);
    expect(evidence[0]).toEqual({
      part: "evaluation-mode",
      before: "decoder: evaluation",
      after: "decoder: evaluation (entered 2 times)",
      intact: false,
      advisory: true,
      note: "left so by what was measured; training's own mode was restored",
    });
    const all = await inWindow(({ lm }) => void lm.enterEval());
    expect(all[0]).toMatchObject({ before: "encoder: evaluation; decoder: evaluation", intact: false });
  });

  it("several times and leaves each entry is not reported, in any order", async () => {
    const inner = (parts: ReturnType<typeof twoParts>) => {
      const [a, b, c] = [parts.lm.enterEval(), parts.lm.enterEval(), parts.decoder.enter()];
      a();
      c();
      b();
      parts.lm.enterEval()();
    };
    expect(broken(await inWindow(inner))).toEqual([]);
  });

  it("is reported by the guard mode too if its change cannot be undone", async () => {
    await tf.setBackend("cpu");
    const { lm } = twoParts();
    let rate = 0.1;
    const guards = tfjsGuards({ ...lm, modes: () => `${lm.modes()}\ndropout ${rate}` });
    const evidence = await around(guards, () => void (rate = 0));
    const seen = evidence.filter(({ intact }) => intact === false);
    expect(seen.map(({ part, advisory, before }) => [part, advisory, before])).toEqual([
      ["evaluation-mode", undefined, "dropout 0.1"],
      ["mode", undefined, "dropout 0.1"],
    ]);
    lm.dispose();
  });
});

it("reports parts that it cannot observe", async () => {
  await tf.setBackend("cpu");
  const lm = tinyLM({ vocabSize: 8 });
  const evidence = await around(tfjsGuards(lm.plain), () => change(lm.head, 0, () => 9));
  expect(evidence.map(({ part, intact }) => [part, intact])).toEqual([
    ["weights", null],
    ["mode", null],
    ["variables", null],
    ["tensors", true],
  ]);
  lm.dispose();
});

it("reports unlisted weights as not observed, even if the optimizer's slots are listed", async () => {
  await tf.setBackend("cpu");
  const lm = tinyLM({ vocabSize: 8 });
  const adam = tf.train.adam(0.01);
  const variables = async (run: () => unknown) =>
    (await around(tfjsGuards(lm.plain, adam), run)).find(({ part }) => part === "variables");
  expect(await variables(() => change(lm.head, 0, () => 9))).toMatchObject({
    intact: null,
    note: /does not list its weights/,
  });
  const { slots } = optimizerState(adam);
  expect(
    await variables(() => tf.tidy(() => (slots[0]!.read() as tf.Variable).assign(tf.scalar(9)))),
  ).toMatchObject({ intact: false });
  lm.dispose();
  adam.dispose();
});

it("reports an optimizer with hidden state as not observed, even if its settings are visible", async () => {
  await tf.setBackend("cpu");
  class Lion extends tf.Optimizer {
    readonly momenta = new Map<string, number>();
    rate = 0.1;
    static readonly className = "Lion";
    override applyGradients(): void {}
    getConfig() {
      return {};
    }
    override getClassName() {
      return "Lion";
    }
  }
  const lm = tinyLM({ vocabSize: 8 });
  const lion = new Lion();
  const receipt = async (run: () => unknown) =>
    (await around(tfjsGuards(lm, lion), run)).find(({ part }) => part === "optimizer")!;
  expect(await receipt(() => lion.momenta.set("head", 1))).toMatchObject({
    intact: null,
    note: expect.stringContaining("shows no slots"),
  });
  expect(await receipt(() => (lion.rate = 0.2))).toMatchObject({ intact: false });
  lm.dispose();
});

it("reports the number of optimizer slots, 0 for RMSProp before the first step", async () => {
  await tf.setBackend("cpu");
  const lm = tinyLM({ vocabSize: 8 });
  const rmsprop = tf.train.rmsprop(0.1);
  const receipt = async () =>
    (await around(tfjsGuards(lm, rmsprop), () => null)).find(({ part }) => part === "optimizer")!;
  expect(await receipt()).toMatchObject({ intact: true, after: expect.stringContaining(" slots=0 ") });
  rmsprop.minimize(() => tf.sum(tf.square(lm.head)), false, [lm.head]);
  expect(await receipt()).toMatchObject({ intact: true, after: expect.stringContaining(" slots=2 ") });
  lm.dispose();
  rmsprop.dispose();
});

it("rejects an invalid method and unknown options in tfjsGuards and fingerprintWeights", async () => {
  const lm = tinyLM({ vocabSize: 8 });
  expect(() => tfjsGuards(lm, undefined, { fingerprint: "Exact" as "exact" })).toThrow(
    'tfjsGuards options.fingerprint: got "Exact", expected "exact" or "approximate". Did you mean "exact"?',
  );
  expect(() => tfjsGuards(lm, undefined, { method: "exact" } as object)).toThrow(
    'tfjsGuards options.method: got the unknown option "method"',
  );
  await expect(fingerprintWeights(lm.weights(), { method: "Exact" as "exact" })).rejects.toThrow(
    'fingerprintWeights options.method: got "Exact"',
  );
  lm.dispose();
});

describe("optimizerState", () => {
  const slotsOf = (optimizer: tf.Optimizer): readonly string[] => {
    const variable = tf.variable(tf.ones([2]), true, undefined);
    optimizer.minimize(() => tf.sum(tf.square(variable)), false, [variable]);
    const { slots, numbers } = optimizerState(optimizer);
    expect(numbers.some(([name]) => name === "learningRate")).toBe(true);
    variable.dispose();
    const names = slots.map(({ name }) => name.replace(/\/.*/, ""));
    optimizer.dispose();
    return names;
  };

  it("finds the state of each optimizer of TensorFlow.js", () => {
    expect(slotsOf(tf.train.sgd(0.1))).toEqual(["c"]);
    expect(slotsOf(tf.train.momentum(0.1, 0.9))).toEqual(["c", "accumulations", "m"]);
    expect(slotsOf(tf.train.adagrad(0.1))).toEqual(["accumulatedGrads"]);
    expect(slotsOf(tf.train.adadelta(0.1))).toEqual(["accumulatedGrads", "accumulatedUpdates"]);
    expect(slotsOf(tf.train.adam(0.1))).toEqual([
      "accumulatedFirstMoment",
      "accumulatedSecondMoment",
      "accBeta1",
      "accBeta2",
    ]);
    expect(slotsOf(tf.train.adamax(0.1)).toSorted()).toEqual([
      "accBeta1",
      "accumulatedFirstMoment",
      "accumulatedWeightedInfNorm",
      "iteration",
    ]);
    expect(slotsOf(tf.train.rmsprop(0.1, 0.9, 0.5, 1e-8, true))).toEqual([
      "accumulatedMeanSquares",
      "accumulatedMoments",
      "accumulatedMeanGrads",
    ]);
  });

  it("reads an optimizer that lists its slots", () => {
    const slot = { name: "m", read: () => tf.zeros([1]) };
    expect(optimizerState({ slots: () => [slot] })).toEqual({ slots: [slot], numbers: [], isComplete: true });
    expect(optimizerState({ slots: () => [], steps: 7 })).toEqual({
      slots: [],
      numbers: [["steps", 7]],
      isComplete: true,
    });
  });
});

it("gives equal weights the same fingerprint on every backend", async () => {
  const digests: string[] = [];
  for (const backend of ["cpu", "wasm"]) {
    await tf.setBackend(backend);
    const lm = tinyLM();
    digests.push(await fingerprintWeights(lm.weights()));
    lm.dispose();
  }
  expect(digests[0]).toBe(digests[1]);
});
