import * as tf from "@tensorflow/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import { PeriodicCallback, type Snapshot, everyPercent, withSession, measure } from "@periodic-eval/core";
import { fakeTokenizer, fakeGuard, memoryStore } from "@periodic-eval/testing";
import { toyEvaluation } from "../../testing/src/toy-training.test-data.ts";
import type { CausalLM } from "./causal-lm/causal-lm.ts";
import { tinyLM } from "./causal-lm/tiny-lm.test-data.ts";
import { inMemory } from "./in-memory.ts";

const tokenizer = fakeTokenizer();
const { vocabSize } = tokenizer;
beforeAll(async () => void (await tf.setBackend("cpu")));

/** A model of the layers API: embedding, attention or none, dropout, head. `training` is passed to every call. */
function layered({ rate = 0.1, training = false } = {}): CausalLM {
  const model = tf.sequential({
    layers: [
      tf.layers.embedding({ inputDim: vocabSize, outputDim: 8, inputLength: 24 }),
      tf.layers.dropout({ rate }),
      tf.layers.dense({ units: vocabSize }),
    ],
  });
  return {
    vocabSize,
    contextLength: 24,
    fixedLength: 24,
    logits: (ids) => tf.tidy(() => model.apply(ids, { training }) as tf.Tensor3D),
  };
}

/** A model with one layer of attention over all tokens of a row, with or without a causal mask. */
function attending(isCausal: boolean): CausalLM {
  const weight = (shape: [number, number], seed: number) =>
    tf.variable(tf.randomNormal(shape, 0, 0.3, "float32", seed), true);
  const [embedding, query, head] = [weight([vocabSize, 8], 1), weight([8, 8], 2), weight([8, vocabSize], 3)];
  return {
    vocabSize,
    contextLength: 24,
    logits: (ids) =>
      tf.tidy(() => {
        const [batch, length] = ids.shape;
        const states = tf.reshape(tf.gather(embedding, tf.reshape(ids, [-1])), [batch, length, 8]);
        const asked = tf.reshape(tf.matMul(tf.reshape(states, [-1, 8]), query as tf.Tensor2D), [
          batch,
          length,
          8,
        ]);
        const scores = tf.matMul(asked, states, false, true);
        const hidden = tf.linalg.bandPart(tf.ones([length, length]), -1, 0);
        const mask = isCausal ? tf.mul(tf.sub(1, hidden), -1e9) : tf.zeros([length, length]);
        const mixed = tf.matMul(tf.softmax(tf.add(scores, mask)), states);
        const logits = tf.matMul(tf.reshape(tf.add(mixed, states), [-1, 8]), head);
        return tf.reshape(logits, [batch, length, vocabSize]);
      }),
  };
}

/** Measures before and after a training of two steps, whose weights change. */
async function trained(lm: CausalLM): Promise<readonly Snapshot[]> {
  const store = memoryStore();
  let step = 0;
  const callbacks = [
    new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [everyPercent(100)] }),
  ];
  const guards = [fakeGuard({ name: "weights", observe: () => `w${step}` })];
  await withSession(
    { run: store, maxSteps: 2, model: inMemory(lm, tokenizer), guards, callbacks, loggers: [] },
    async (session) => {
      for (; step < 2;) {
        step += 1;
        await session.stepEnd();
      }
    },
  );
  return store.list();
}

const kindsOf = (snapshots: readonly Snapshot[]) =>
  snapshots.map(({ warnings }) => warnings.map(({ kind, void: isVoid, metrics }) => [kind, isVoid, metrics]));

describe("a model whose dropout is left on", () => {
  it("has a warning in every snapshot, which voids every metric, and no verdict", async () => {
    const snapshots = await trained(layered({ training: true }));
    expect(kindsOf(snapshots)).toEqual([[["unrepeatable", true, null]], [["unrepeatable", true, null]]]);
    expect(snapshots[1]!.warnings[0]!.message).toMatch(
      /^The model scores the same tokens differently each time, by up to 0\.\d+ nats per token, where rounding explains 0\.001/,
    );
    expect(Object.values(snapshots[1]!.paired.baseline!).map(({ verdict }) => verdict)).toEqual(
      Object.values(snapshots[1]!.paired.baseline!).map(() => null),
    );
  });

  it("has the warning when it is measured once", async () => {
    const { snapshot } = await measure(toyEvaluation(), inMemory(layered({ training: true }), tokenizer));
    expect(kindsOf([snapshot])).toEqual([[["unrepeatable", true, null]]]);
  });

  it("draws nothing from Math.random for the probe", async () => {
    const model = inMemory(layered({ training: true }), tokenizer);
    const draws: number[] = [];
    const random = Math.random;
    Math.random = () => (draws.push(0), random());
    try {
      await measure(toyEvaluation(), model);
    } finally {
      Math.random = random;
    }
    expect(draws).toEqual([]);
  });

  it("has none in evaluation mode", async () => {
    expect(kindsOf(await trained(layered()))).toEqual([[], []]);
  });
});

describe("a model without a causal mask", () => {
  it("has a warning that later tokens change earlier log-probs", async () => {
    const snapshots = await trained(attending(false));
    expect(kindsOf(snapshots)).toEqual([[["looks_ahead", true, null]], [["looks_ahead", true, null]]]);
    expect(snapshots[0]!.warnings[0]!.message).toContain("Give it a causal mask.");
  });

  it("has none with the mask", async () => {
    expect(kindsOf(await trained(attending(true)))).toEqual([[], []]);
  });
});

it.each([48, 12])(
  "finds no fault in a model that reads incrementally, with context length %d, and keeps no tensor",
  async (contextLength) => {
    const lm = tinyLM({ contextLength });
    const { numTensors } = tf.memory();
    const { snapshot } = await measure(toyEvaluation({ items: 1 }), inMemory(lm, tokenizer));
    expect(kindsOf([snapshot])).toEqual([[]]);
    expect(tf.memory().numTensors).toBe(numTensors);
    lm.dispose();
  },
);
