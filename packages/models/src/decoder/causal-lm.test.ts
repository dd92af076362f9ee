import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { drop } from "../testing/drop.test-data.ts";
import { meanLoss } from "../testing/mean-loss.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";

const ids = [
  [1, 2, 3, 4, 5],
  [6, 7, 8, 0, 0],
];
const labels = [
  [-100, 2, 3, 4, 5],
  [-100, 7, 8, -100, -100],
];

describe.each(["cpu", "wasm"])("a decoder on %s", (backend) => {
  let model: CheckpointLM;
  beforeEach(async () => {
    await useBackend({ backend });
    model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3, dropout: 0.5 });
  });
  afterEach(() => model.dispose());

  it("returns the same logits for a sequence in a padded batch as alone", () => {
    tf.tidy(() => {
      const batch = model.logits(tf.tensor2d(ids, [2, 5], "int32")).arraySync();
      const alone = model.logits(tf.tensor2d([ids[1]!.slice(0, 3)], [1, 3], "int32")).arraySync();
      for (let t = 0; t < 3; t++) {
        for (let v = 0; v < model.vocabSize; v++) expect(batch[1]![t]![v]).toBeCloseTo(alone[0]![t]![v]!, 5);
      }
    });
  });

  it("runs the head on the requested rows only, in their order, even twice on one row", () => {
    tf.tidy(() => {
      const input = tf.tensor2d(ids, [2, 5], "int32");
      const all = model.logits(input).arraySync().flat();
      const some = model.logitsAt(input, tf.tensor1d([7, 0, 7], "int32")).arraySync();
      [7, 0, 7].forEach((row, i) =>
        some[i]!.forEach((value, v) => expect(value).toBeCloseTo(all[row]![v]!, 5)),
      );
    });
  });

  it("leaves no tensors after a forward and a backward pass", () => {
    const before = tf.memory().numTensors;
    const rows = tf.tensor1d([0], "int32");
    const input = tf.tensor2d(ids, [2, 5], "int32");
    tf.dispose([model.logits(input), model.logitsAt(input, rows), model.hiddenStates(input), input, rows]);
    expect(tf.memory().numTensors).toBe(before);
    const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
    expect(tf.memory().numTensors).toBe(before + 1 + model.trainables().length);
    tf.dispose([value, grads]);
    expect(tf.memory().numTensors).toBe(before);
  });

  it("drops values from named streams in training, and not in evaluation", () => {
    const run = (seed: string) => drop(model, ids, seed).logits;
    const { logits, names } = drop(model, ids, "a");
    expect(run("a")).toEqual(logits);
    expect(run("b")).not.toEqual(logits);
    expect(names).toEqual([
      "embedding",
      "layer.0.attention",
      "layer.0.mlp",
      "layer.1.attention",
      "layer.1.mlp",
    ]);
    expect(model.modes()).toBe("decoder: training, dropout 0.5");
    const leave = model.enterEval();
    expect(model.modes()).toBe("decoder: evaluation, dropout 0.5");
    expect(run("a")).toEqual(run("b"));
    const leaveInner = model.enterEval();
    expect(model.modes()).toBe("decoder: evaluation (entered 2 times), dropout 0.5");
    leaveInner();
    expect(model.modes()).toBe("decoder: evaluation, dropout 0.5");
    leave();
    expect(model.modes()).toBe("decoder: training, dropout 0.5");
  });

  it.each([
    [[[1, 32]], /id 32, expected ids from 0 to 31/],
    [[[-1]], /id -1/],
    [[Array<number>(17).fill(1)], /\[1, 17\], expected at least one sequence of 1 to 16 tokens/],
  ])("throws for the ids %j", (rows, message) => {
    tf.tidy(() => {
      expect(() => model.logits(tf.tensor2d(rows, [1, rows[0]!.length], "int32"))).toThrow(message);
    });
  });

  it("throws in every kind of forward pass after disposal", () => {
    const gone = createCausalLM(tinyConfig, { seed: "a" });
    gone.dispose();
    const one = new Int32Array(1);
    const block = { batch: 1, length: 1, ids: one, positions: one, segments: one, lastSegments: one };
    tf.tidy(() => {
      const input = tf.tensor2d(ids, [2, 5], "int32");
      const rows = tf.tensor1d([0], "int32");
      for (const use of [
        () => gone.logits(input),
        () => gone.logitsAt(input, rows),
        () => gone.trainingLogits(input, rows, () => () => 0),
        () => gone.hiddenStates(input),
        () => gone.incremental.extend(block, { rows: [0] }),
        () => gone.incremental.logitsOf(tf.zeros([1, 8])),
      ])
        expect(use).toThrow("got a disposed model, expected a model that still has its weights");
    });
  });

  it("names variables after the checkpoint, with other names for a second model", () => {
    const second = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    expect(model.trainables()[0]!.name).toBe("model.embed_tokens.weight");
    expect(second.trainables()[0]!.name).toBe("model.embed_tokens.weight#2");
    expect(second.weights()[0]!.name).toBe("model.embed_tokens.weight");
    second.dispose();
  });
});

describe("createCausalLM", () => {
  it("draws normal weights with the requested deviation from its seed, and sets norms to 1", async () => {
    await useBackend({ backend: "cpu" });
    const models = ["a", "a", "b"].map((seed) => createCausalLM(tinyConfig, { seed, initStd: 0.3 }));
    const [first, second, other] = models.map((model) =>
      model.weights().map((weight) => [...weight.read().dataSync()]),
    );
    expect(first).toEqual(second);
    expect(first![0]).not.toEqual(other![0]);
    // 32·8 draws of deviation 0.3: the deviation of the sample is within 0.3·(1 ± 5/√512) with a probability of about 1 − 6e-7.
    const embedding = first![0]!;
    const deviation = Math.sqrt(embedding.reduce((sum, x) => sum + x * x, 0) / embedding.length);
    expect(Math.abs(deviation - 0.3)).toBeLessThan(0.3 * (5 / Math.sqrt(512)));
    expect(first![1]).toEqual(Array(8).fill(1));
    models.forEach((model) => model.dispose());
  });

  it("leaves no tensors if it runs out of memory", () => {
    const before = tf.memory().numTensors;
    const engine = tf.engine();
    const make = engine.makeVariable.bind(engine);
    let created = 0;
    const variable = vi.spyOn(engine, "makeVariable").mockImplementation((...given) => {
      if (++created === 5) throw new Error("out of memory");
      return make(...given);
    });
    expect(() => createCausalLM(tinyConfig, { seed: "a" })).toThrow("out of memory");
    variable.mockRestore();
    expect(tf.memory().numTensors).toBe(before);
  });

  it("throws for a dropout outside [0, 1)", () => {
    for (const dropout of [-0.1, 1, NaN])
      expect(() => createCausalLM(tinyConfig, { seed: "a", dropout })).toThrow(/dropout/);
  });
});
