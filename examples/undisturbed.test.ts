// The twin runs and negative controls of the journeys that are not our trainer: a hand-written loop and `model.fit`.
// (Those of our trainer stand beside it.)
import {
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  statefulStream,
  streamGuard,
  withSession,
  type TrainerCallback,
} from "@periodic-eval/core";
import { readRun } from "@periodic-eval/core/snapshots";
import { fakeTokenizer } from "@periodic-eval/core/testing";
import {
  fingerprintWeights,
  fitCallbacks,
  fromLayersModel,
  inMemory,
  tfjsGuards,
} from "@periodic-eval/core/tfjs";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "undisturbed-"));
const questions = join(folder, "questions.jsonl");
const tokenizer = fakeTokenizer();
const steps = 60;
let runs = 0;

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  const lines = ["abc", "bcd", "cde"].map((question) => ({
    question,
    choice_labels: ["A", "B"],
    choices: [`${question}a`, `${question}b`],
    correct_answer: "B",
  }));
  writeFileSync(questions, lines.map((line) => JSON.stringify(line)).join("\n"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Generates in the window, draws from Math.random there, and is graded beside training. */
const chatter = defineEvaluation({
  name: "chatter",
  version: "1",
  needs: ["generate"],
  items: () => ["ab", "cde"].map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed }) {
    Math.random();
    const replies = await model.generate(
      items.map(({ text }) => ({ prompt: { text }, sampling: { maxNewTokens: 5, temperature: 1, seed } })),
      { signal },
    );
    return items.map((item, i) => ({ ...item, reply: replies[i]!.text }));
  },
  grade: async (rows) => rows.map((row) => ({ ...row, characters: row.reply.length })),
  metrics: ({ mean }) => ({ length: mean((row) => row.characters) }),
});

const everything = (): TrainerCallback[] => [
  new PeriodicCapabilityCallback({ questions }),
  new PeriodicCapabilityCallback({ questions, method: "cloze", id: "cloze" }),
  new PeriodicCallback(chatter, { schedule: [everyPercent(10)] }),
];

const create = () =>
  createCausalLM(
    {
      model_type: "llama",
      vocab_size: tokenizer.vocabSize,
      hidden_size: 16,
      intermediate_size: 32,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      max_position_embeddings: 128,
      rms_norm_eps: 1e-5,
      rope_theta: 10_000,
      tie_word_embeddings: true,
      hidden_act: "silu",
    },
    { seed: "undisturbed", dropout: 0.1 },
  );

interface Loop {
  readonly model: ReturnType<typeof create>;
  readonly adam: AdamW;
  readonly random: ReturnType<typeof statefulStream>;
}

/** A loop of one's own with one stream of random numbers for order and dropout, as such loops have. */
async function handWritten(
  callbacks: (loop: Loop) => readonly TrainerCallback[],
  onBrokenReceipt: "stop" | "record" = "stop",
) {
  const model = create();
  const adam = new AdamW(model.trainables());
  const random = statefulStream("training");
  const run = join(folder, `run-${(runs += 1)}`);
  const losses: number[] = [];
  const warnings: string[] = [];
  let stopReason: string | null = null;
  await withSession(
    {
      run,
      maxSteps: steps,
      model: inMemory(model, tokenizer),
      guards: [...tfjsGuards(model, adam), streamGuard("training-stream", () => random.state())],
      callbacks: callbacks({ model, adam, random }),
      loggers: [
        {
          name: "warnings",
          event: (e) => void (e.kind === "warning" && warnings.push(`${e.where}: ${e.message}`)),
        },
      ],
      onBrokenReceipt,
    },
    async (session) => {
      for (let step = 0; step < steps; step += 1) {
        losses.push(trainStep({ model, adam, random }));
        const { stop } = await session.stepEnd({ metrics: { loss: losses.at(-1)! } });
        stopReason = stop;
        if (stop !== null) break;
      }
    },
  );
  const bits = [
    await fingerprintWeights(model.weights()),
    await fingerprintWeights(adam.slots()),
    random.state(),
  ];
  model.dispose();
  adam.dispose();
  return { run, losses, bits, warnings, stopReason: stopReason as string | null };
}

function trainStep({ model, adam, random }: Loop): number {
  return tf.tidy(() => {
    const start = Math.floor(random.next() * 100);
    const ids = Array.from({ length: 24 }, (_, i) => 97 + ((start + i * i) % 26));
    const input = tf.tensor2d(ids.slice(0, -1), [1, 23], "int32");
    const targets = tf.tensor1d(ids.slice(1), "int32");
    const { value, grads } = tf.variableGrads(
      () =>
        crossEntropySum(
          model.trainingLogits(input, tf.range(0, 23, 1, "int32"), () => random.next),
          targets,
        ),
      [...model.trainables()],
    );
    adam.apply(grads, 3e-3, 1 / 23);
    return value.dataSync()[0]!;
  });
}

describe("a hand-written loop", () => {
  it("ends in the same bits with every callback and with none: weights, optimizer, random stream, losses", async () => {
    const plain = await handWritten(() => []);
    const watched = await handWritten(everything);
    expect(watched.warnings).toEqual([]);
    expect(watched.losses).toEqual(plain.losses);
    expect(watched.bits).toEqual(plain.bits);
    const snapshots = (await readRun(watched.run)).phases.flatMap((phase) => phase.snapshots);
    // Every 20 %, twice, and every 10 %, each with the start: 6 + 6 + 11.
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(23).fill("complete"));
    expect(snapshots.flatMap(({ receipt }) => receipt).filter(({ intact }) => intact !== true)).toEqual([]);
  });

  /** What an evaluation does in the window, and the guards that must name it. */
  const disturbances: Record<
    string,
    { guards: readonly string[]; stops: boolean; does: (loop: Loop) => void }
  > = {
    "draws one training random number": {
      guards: ["training-stream"],
      stops: true,
      does: ({ random }) => void random.next(),
    },
    "swaps two weights": {
      guards: ["variables", "weights"],
      stops: true,
      does: ({ model }) =>
        tf.tidy(() => {
          const [one, other] = model.trainables().filter(({ shape }) => String(shape) === "16,32") as [
            tf.Variable,
            tf.Variable,
          ];
          const kept = tf.clone(one);
          one.assign(tf.clone(other));
          other.assign(kept);
        }),
    },
    "adds one ulp to one weight": {
      guards: ["variables", "weights"],
      stops: true,
      does: ({ model }) => {
        const weight = model.trainables()[0]!;
        const values = weight.dataSync<"float32">().slice();
        new Int32Array(values.buffer)[5]! += 1;
        tf.tidy(() => weight.assign(tf.tensor(values, weight.shape)));
      },
    },
    "changes an optimizer slot": {
      guards: ["variables", "optimizer"],
      stops: true,
      does: ({ adam }) =>
        adam.restore(
          adam.steps + 1,
          new Map(adam.slots().map(({ name, read }) => [name, read().dataSync<"float32">().slice()])),
        ),
    },
    "leaks a tensor": { guards: ["tensors"], stops: false, does: () => void tf.keep(tf.scalar(1)) },
  };

  it.each(Object.keys(disturbances))("names the guard that saw an evaluation that %s", async (name) => {
    const { guards, stops, does } = disturbances[name]!;
    const evil = (loop: Loop) =>
      new PeriodicCallback(
        defineEvaluation({
          name: "evil",
          version: "1",
          needs: ["tokenizer"],
          items: () => [{ id: "one" }],
          async measure(_model, items) {
            does(loop);
            return items;
          },
          metrics: ({ mean }) => ({ nothing: mean(() => 1) }),
        }),
        { schedule: [everyPercent(50)], atStart: false, atEnd: false },
      );
    for (const onBrokenReceipt of ["stop", "record"] as const) {
      const { run, losses, stopReason } = await handWritten((loop) => [evil(loop)], onBrokenReceipt);
      const isStopped = stops && onBrokenReceipt === "stop";
      expect(losses.length).toBe(isStopped ? steps / 2 : steps);
      if (isStopped) expect(guards.some((guard) => stopReason!.includes(`guard "${guard}"`))).toBe(true);
      const [snapshot] = (await readRun(run)).phases[0]!.snapshots;
      const broken = snapshot!.receipt
        .filter(({ intact }) => intact === false)
        .map(({ part }) => part.split("/")[0]);
      expect(broken).toEqual(expect.arrayContaining([...guards]));
    }
  });

  it("names the guard that saw a hook leave the model in evaluation mode", async () => {
    const hook = ({ model }: Loop): TrainerCallback => ({
      id: "careless",
      onStepEnd: ({ progress }) => void (progress.step === 30 && model.enterEval()),
    });
    const { losses, stopReason, warnings } = await handWritten((loop) => [hook(loop)]);
    expect(losses.length).toBe(30);
    expect(stopReason).toContain('guard "mode"');
    expect(warnings.join("\n")).toContain("careless");
  });

  it("goes on after an evaluation that throws, whose record says why", async () => {
    const throwing = { ...chatter, measure: () => Promise.reject(new Error("no reply")) };
    const { run, losses } = await handWritten(() => [
      new PeriodicCallback(throwing, { schedule: [everyPercent(50)] }),
    ]);
    expect(losses.length).toBe(steps);
    const { snapshots } = (await readRun(run)).phases[0]!;
    expect(snapshots.map(({ step, status, reason }) => [step, status, reason])).toEqual(
      [0, 30, 60].map((step) => [step, "failed", "no reply"]),
    );
  });
});

describe("model.fit", () => {
  const length = 24;
  const vocabulary = tokenizer.vocabSize;

  /** In place of an embedding, whose gradient has no wasm kernel. */
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

  /** Layers count their names through the process: the second model's weights have others. */
  const numbered = (tensors: readonly tf.Tensor[]) =>
    tensors.map((tensor, i) => ({ name: String(i), read: () => tensor }));

  async function fit(callbacks: (model: tf.LayersModel) => readonly TrainerCallback[]) {
    const native = Math.random;
    const random = statefulStream("fit");
    Math.random = random.next; // layers draw initial weights, dropout masks and shuffles from it
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

  it("stops, and names the guard, where an evaluation changes a weight", async () => {
    const evil = (model: tf.LayersModel) =>
      new PeriodicCallback(
        defineEvaluation({
          name: "evil",
          version: "1",
          needs: ["tokenizer"],
          items: () => [{ id: "one" }],
          async measure(_model, items) {
            const [kernel, ...others] = model.layers[1]!.getWeights();
            tf.tidy(() => model.layers[1]!.setWeights([tf.mul(kernel!, 1.5), ...others]));
            return items;
          },
          metrics: ({ mean }) => ({ nothing: mean(() => 1) }),
        }),
        { schedule: [everyPercent(50)], atStart: false, atEnd: false },
      );
    const { run, losses } = await fit((model) => [evil(model)]);
    expect(losses!.length).toBe(5);
    const [snapshot] = (await readRun(run)).phases[0]!.snapshots;
    const broken = snapshot!.receipt.filter(({ intact }) => intact === false).map(({ part }) => part);
    expect(broken).toEqual(expect.arrayContaining(["variables", "weights"]));
  });
});
