// Twin run and negative controls of a hand-written loop: with and without callbacks, training must end in the same bits.
// packages/trainers tests SFTTrainer.
import {
  everyPercent,
  PeriodicCallback,
  streamGuard,
  withSession,
  type TrainerCallback,
} from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { fingerprintWeights, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { createCausalLM, withLora, type CheckpointLM } from "@periodic-eval/models";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  chatter,
  countedStream,
  disturbing,
  everything,
  folder,
  steps,
  tokenizer,
} from "./undisturbed.test-data.ts";

let runs = 0;

const createBase = () =>
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

/** The trained weights: all of them, or an adapter with dropout on a model with dropout. */
const trained = {
  "every weight": () => ({ model: createBase(), base: null }),
  "an adapter": () => {
    const base = createBase();
    return { model: withLora(base, { rank: 4, dropout: 0.2 }), base };
  },
};
type Trained = keyof typeof trained;

interface Loop {
  readonly model: Pick<CheckpointLM, "trainables" | "trainingLogits" | "enterEval">;
  readonly adam: AdamW;
  readonly random: ReturnType<typeof countedStream>;
}

/** A hand-written loop that draws batch order and dropout from one random stream. */
async function handWritten(
  callbacks: (loop: Loop) => readonly TrainerCallback[],
  onBrokenReceipt: "stop" | "record" = "stop",
  what: Trained = "every weight",
  maxSteps = steps,
) {
  const { model, base } = trained[what]();
  const adam = new AdamW(model.trainables());
  const random = countedStream("training");
  const run = join(folder, `run-${(runs += 1)}`);
  const losses: number[] = [];
  const warnings: string[] = [];
  let stopReason: string | null = null;
  await withSession(
    {
      run,
      maxSteps,
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
      budget: { overheadPercent: null },
    },
    async (session) => {
      for (let step = 0; step < maxSteps; step += 1) {
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
  base?.dispose();
  adam.dispose();
  return { run, losses, bits, warnings, stopReason: stopReason as string | null };
}

/** Whether two variables are different weights of the same shape. */
const isTwin = (a: tf.Variable, b: tf.Variable) => a !== b && String(a.shape) === String(b.shape);

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
  const both = Object.keys(trained) as Trained[];

  it.each(both)("ends in the same bits with every callback and with none when it trains %s", async (what) => {
    const plain = await handWritten(() => [], "stop", what);
    const watched = await handWritten(everything, "stop", what);
    expect(watched.warnings).toEqual([]);
    expect(watched.losses).toEqual(plain.losses);
    expect(watched.bits).toEqual(plain.bits);
    const snapshots = (await readRun(watched.run)).phases.flatMap((phase) => phase.snapshots);
    // Two schedules of every 20 % and one of every 10 %, each including the start: 6 + 6 + 11.
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(23).fill("complete"));
    expect(snapshots.flatMap(({ receipt }) => receipt).filter(({ intact }) => intact !== true)).toEqual([]);
  });

  /** Steps of the runs that are disturbed halfway. */
  const few = 12;

  /** A disturbance inside the window, and the guards that must report it. */
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
          const all = model.trainables();
          const one = all.find((weight) => all.some((twin) => isTwin(weight, twin)))!;
          const other = all.find((twin) => isTwin(one, twin))!;
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
    // The window undoes it, so that training continues in training mode.
    "leaves the model in evaluation mode": {
      guards: ["evaluation-mode"],
      stops: false,
      does: ({ model }) => void model.enterEval(),
    },
    "leaks a tensor": { guards: ["tensors"], stops: false, does: () => void tf.keep(tf.scalar(1)) },
  };

  const cases = both.flatMap((what) => Object.keys(disturbances).map((name) => [what, name] as const));
  it.each(cases)(
    "reports, when it trains %s, the guard that detects an evaluation that %s",
    async (what, name) => {
      const { guards, stops, does } = disturbances[name]!;
      for (const onBrokenReceipt of ["stop", "record"] as const) {
        const { run, losses, stopReason } = await handWritten(
          (loop) => [disturbing(() => does(loop))],
          onBrokenReceipt,
          what,
          few,
        );
        const isStopped = stops && onBrokenReceipt === "stop";
        expect(losses.length).toBe(isStopped ? few / 2 : few);
        if (isStopped) expect(guards.some((guard) => stopReason!.includes(`guard "${guard}"`))).toBe(true);
        const [snapshot] = (await readRun(run)).phases[0]!.snapshots;
        const broken = snapshot!.receipt
          .filter(({ intact }) => intact === false)
          .map(({ part }) => part.split("/")[0]);
        expect(broken).toEqual(expect.arrayContaining([...guards]));
      }
    },
  );

  it.each(both)(
    "reports, when it trains %s, the guard that detects a hook that leaves evaluation mode on",
    async (what) => {
      const hook = ({ model }: Loop): TrainerCallback => ({
        id: "careless",
        onStepEnd: ({ progress }) => void (progress.step === few / 2 && model.enterEval()),
      });
      const { losses, stopReason, warnings } = await handWritten((loop) => [hook(loop)], "stop", what, few);
      expect(losses.length).toBe(few / 2);
      expect(stopReason).toContain('guard "mode"');
      expect(warnings.join("\n")).toContain("careless");
    },
  );

  it("continues after an evaluation that throws, and records the reason", async () => {
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
