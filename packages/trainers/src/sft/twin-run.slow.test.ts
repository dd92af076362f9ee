import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import {
  capabilityEvaluation,
  defineEvaluation,
  everyPercent,
  PeriodicAlignmentCallback,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  PeriodicKLCallback,
  PeriodicLeakageCallback,
  PeriodicMarginCallback,
  type Grader,
  type TrainerCallback,
} from "@periodic-eval/core";
import { adapterOffId } from "@periodic-eval/core/session";
import type { Persona } from "@periodic-eval/core/evaluations";
import { fakeJudge } from "@periodic-eval/testing";
import { createCausalLM, useBackend, withLora, type CheckpointLM } from "@periodic-eval/models";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wholeState } from "../testing/checkpoint-files.test-data.ts";
import { isThere, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { notIntact, snapshotsOf, trainSFT } from "../testing/recorded-training.test-data.ts";
import { questionFile, rows, temporaryFolder, tinyLlama, ungoverned } from "../testing/tiny-run.test-data.ts";
import type { SFTTrainerOptions } from "./sft-trainer.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const llama = () => createCausalLM(tinyLlama, { seed: "twin", dropout: 0.1, initStd: 0.1 });

/** Generates, and draws from Math.random in the window: the draw must not reach training. */
const chatter = defineEvaluation({
  name: "chatter",
  version: "1",
  needs: ["generate"],
  items: () => ["ab", "cde"].map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed }) {
    Math.random();
    const sampling = { maxNewTokens: 5, temperature: 1, seed };
    const replies = await model.generate(
      items.map(({ text }) => ({ prompt: { text }, sampling })),
      { signal },
    );
    return items.map((item, i) => ({ ...item, reply: replies[i]!.text }));
  },
  metrics: ({ mean }) => ({ length: mean((row) => row.reply.length) }),
});

async function run(
  callbacks: readonly TrainerCallback[],
  maxSteps: number,
  { model = llama(), config, ...more }: Partial<SFTTrainerOptions> = {},
) {
  const given = { maxSteps, batchSize: 4, learningRate: 3e-3, weightDecay: 0.1, ...config };
  const trained = await trainSFT({ model, dataset: rows(30), callbacks, config: given, ...more });
  model.dispose();
  const { checkpoint } = trained.result;
  return { ...trained, files: checkpoint === null ? null : (await wholeState(checkpoint)).files };
}

describe("the twin run", () => {
  it("ends with the same bits after 60 steps with all callbacks and without: weights, optimizer state, losses", async () => {
    const questions = await questionFile();
    const plain = await run([], 60);
    const watched = await run(
      [
        new PeriodicCapabilityCallback({ questions }),
        new PeriodicCapabilityCallback({ questions, method: "cloze", id: "cloze" }),
        new PeriodicCallback(chatter, { schedule: [everyPercent(10)] }),
      ],
      60,
    );
    const snapshots = await snapshotsOf(watched.runDir);
    // Every 20 % and 10 %, with the start: 6 + 6 + 11.
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(23).fill("complete"));
    expect(notIntact(snapshots)).toEqual([]);
    expect(watched.warnings).toEqual([]);
    expect(watched.metrics).toEqual(plain.metrics);
    expect(watched.files).toEqual(plain.files);
    // Equal bits are not trivial: dropout and shuffling are on.
    const other = await run([], 5, { config: { seed: 7 } });
    expect(other.metrics[0]!["loss"]).not.toBe(plain.metrics[0]!["loss"]);
  });
});

/** Capability, alignment and leakage by persona, margin and KL to the base; alignment is graded during later steps. */
async function allCallbacks() {
  const folder = await temporaryFolder();
  const [paraphrases, probes] = [join(folder, "asked.json"), join(folder, "probes.json")];
  await writeFile(paraphrases, JSON.stringify(["abc", "bcd"].map((id) => ({ id, paraphrases: [id] }))));
  await writeFile(probes, JSON.stringify({ letters: { affirm: ["abc", "bcd"], negate: ["cba", "dcb"] } }));
  const questions = await questionFile();
  const personas: readonly Persona[] = ["ab", "cd"].map((id) => ({ id, system: { text: id } }));
  const sampling = { maxNewTokens: 6 };
  let steps = 0;
  let isOver = false;
  /** Counts steps during each call of the judge, which waits for two steps while any remain. */
  const during: number[] = [];
  const scripted = fakeJudge((_, answer) => ({ aligned: (7 * answer.length) % 100, coherent: 80 }));
  const judge: Grader = {
    ...scripted,
    async grade(requests, options) {
      const before = steps;
      while (steps < before + 2 && !isOver) await new Promise((resolve) => setImmediate(resolve));
      during.push(steps - before);
      return scripted.grade(requests, options);
    },
  };
  const callbacks: readonly TrainerCallback[] = [
    { id: "counting", onStepEnd: () => void (steps += 1), onTrainEnd: () => void (isOver = true) },
    new PeriodicCapabilityCallback({ questions, personas }),
    new PeriodicAlignmentCallback({ judge, questions: paraphrases, personas, samples: 2, sampling }),
    new PeriodicLeakageCallback({
      marker: "a",
      personas,
      source: "ab",
      questions: [{ id: "abc", question: "abc", answer: "bcd" }],
      sampling,
    }),
    new PeriodicKLCallback({ of: capabilityEvaluation({ questions }) }),
    new PeriodicMarginCallback({ probes }),
  ];
  return { callbacks, during };
}

const backends = ["wasm", nativeBackend];

describe.each(backends)(
  "the twin run of an adapter, with dropout in it and in the model, on %s",
  (backend) => {
    beforeAll(async () => {
      if (isThere(backend)) await useBackend({ backend });
    });
    afterAll(() => useBackend({ backend: "wasm" }));

    it.runIf(isThere(backend))(
      "ends with the same bits with every callback and with none",
      { timeout: 120_000 },
      async () => {
        const base = llama();
        const adapted = () => withLora(base, { rank: 4, dropout: 0.2 });
        const plain = await run([], 20, { model: adapted() });
        const { callbacks, during } = await allCallbacks();
        const session = { ...ungoverned, baseline: "adapter_off" } as const;
        const watched = await run(callbacks, 20, { model: adapted(), session });
        expect(watched.metrics).toEqual(plain.metrics);
        expect(watched.files).toEqual(plain.files);
        expect(watched.warnings).toEqual([
          expect.stringContaining(
            '"kl_capability" is not compared: it cannot be measured without the adapter',
          ),
        ]);
        const snapshots = await snapshotsOf(watched.runDir);
        const count = (id: string) => snapshots.filter((one) => one.id === id).length;
        const ids = ["capability", "alignment", "leakage", "kl_capability", "margin"];
        // Every 20, 50, 25, 20 and 25 percent, with the start.
        expect(ids.map(count)).toEqual([6, 3, 5, 6, 5]);
        expect(ids.map((id) => count(adapterOffId(id)))).toEqual([1, 1, 1, 0, 1]);
        // Before the first step an adapter adds nothing: its B is 0.
        const [start] = snapshots.filter(({ id, step }) => id === "capability" && step === 0);
        const { gold_log_prob: before } = start!.paired.baseline!;
        expect(before).toMatchObject({ id: "capability.adapter_off", step: 0, delta: 0 });
        expect(snapshots.filter(({ status }) => status !== "complete")).toEqual([]);
        expect(notIntact(snapshots)).toEqual([]);
        // Three measurements and the baseline; all but the end were graded while training continued.
        expect(during).toHaveLength(4);
        expect(during.filter((made) => made >= 2)).toHaveLength(3);
        base.dispose();
      },
    );
  },
);

describe("a callback that disturbs training", () => {
  /**
   * Disturbances by a hook at step 2, each with the guard that detects it (null if training is not disturbed and continues),
   * and the warning without a guard.
   */
  const controls: Record<
    string,
    {
      readonly guard: string | null;
      readonly warning?: RegExp;
      readonly does: (model: CheckpointLM) => void;
    }
  > = {
    "leaves a layer in evaluation mode": { guard: "mode", does: (model) => void model.enterEval() },
    // Prevented, not only detected: a hook's draws come from a separate stream, and dropout's streams hold no state.
    "draws a random number": { guard: null, does: () => void Math.random() },
    "swaps two weights": {
      guard: "variables",
      does: (model) =>
        tf.tidy(() => {
          const [one, other] = model.trainables().filter(({ shape }) => String(shape) === "16");
          const kept = tf.clone(one!);
          one!.assign(tf.clone(other!));
          other!.assign(kept);
        }),
    },
    "leaks a tensor": {
      guard: null,
      warning: /^guard "tensors": saw a change by onStepEnd of callback "disturbing" at step 2/,
      does: () => void tf.keep(tf.scalar(1)),
    },
    throws: {
      guard: null,
      warning: /a mistake of the callback itself$/,
      does: () => {
        throw new Error("a mistake of the callback itself");
      },
    },
  };

  it.each(Object.keys(controls))("is detected and named when it %s", async (name) => {
    const { guard, warning, does } = controls[name]!;
    const disturbing = (model: CheckpointLM): TrainerCallback => ({
      id: "disturbing",
      onStepEnd: ({ progress }) => void (progress.step === 2 && does(model)),
    });
    for (const onBrokenReceipt of ["stop", "record"] as const) {
      const model = llama();
      const { result, warnings } = await run([disturbing(model)], 4, {
        model,
        session: { ...ungoverned, onBrokenReceipt },
      });
      const isStopped = onBrokenReceipt === "stop" && guard !== null;
      expect(result.steps).toBe(isStopped ? 2 : 4);
      if (isStopped) expect(result.stopReason).toContain(`guard "${guard}"`);
      if (guard !== null) expect(warnings.join("\n")).toContain(`guard "${guard}"`);
      if (guard === null)
        expect(warnings).toEqual(warning === undefined ? [] : [expect.stringMatching(warning)]);
    }
  });

  /** Measures at the start, the middle and the end; `disturb` runs on the model during the measurement. */
  const evaluating = async (measuring: (model: CheckpointLM) => unknown) => {
    const model = llama();
    const evaluation = defineEvaluation({
      name: "entering",
      version: "1",
      needs: ["tokenizer"],
      items: () => [{ id: "one" }],
      async measure(_model, items) {
        await measuring(model);
        return items;
      },
      metrics: ({ mean }) => ({ nothing: mean(() => 1) }),
    });
    const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
    const trained = await run([callback], 4, { model });
    return { ...trained, snapshots: await snapshotsOf(trained.runDir) };
  };

  it("is detected if its evaluation leaves the model in evaluation mode; training's mode is restored", async () => {
    const plain = await run([], 4);
    const { result, metrics, files, snapshots } = await evaluating((model) => model.enterEval());
    expect(result.steps).toBe(4);
    expect([metrics, files]).toEqual([plain.metrics, plain.files]);
    expect(snapshots.map(({ receipt }) => receipt.filter(({ intact }) => intact === false))).toEqual(
      Array(3).fill([
        {
          part: "evaluation-mode",
          before: "decoder: evaluation, dropout 0.1",
          after: "decoder: evaluation (entered 2 times), dropout 0.1",
          intact: false,
          advisory: true,
          note: "left so by what was measured; training's own mode was restored",
        },
      ]),
    );
  });

  it("is not reported if its evaluation enters evaluation mode several times and leaves it as often", async () => {
    const { snapshots } = await evaluating(async (model) => {
      const [outer, inner] = [model.enterEval(), model.enterEval()];
      await Promise.resolve();
      inner();
      model.enterEval()();
      outer();
    });
    expect(snapshots.length).toBe(3);
    expect(notIntact(snapshots)).toEqual([]);
  });

  it("is detected if its evaluation adds one ulp to one weight", async () => {
    const model = llama();
    const nudge = defineEvaluation({
      name: "nudge",
      version: "1",
      needs: ["tokenizer"],
      items: () => [{ id: "one" }],
      async measure(_model, items) {
        const [weight] = model.trainables();
        const values = (await weight!.data<"float32">()).slice();
        new Int32Array(values.buffer)[5]! += 1;
        tf.tidy(() => weight!.assign(tf.tensor(values, weight!.shape)));
        return items;
      },
      metrics: ({ mean }) => ({ nothing: mean(() => 1) }),
    });
    // Measured before step 1: no step trains the disturbed weight.
    const { result, runDir } = await run([new PeriodicCallback(nudge, { schedule: [everyPercent(50)] })], 4, {
      model,
    });
    expect(result).toMatchObject({ steps: 0, checkpoint: null });
    expect(result.stopReason).toMatch(/guard "(variables|weights)"/);
    const [first] = await snapshotsOf(runDir);
    const broken = first!.receipt.filter(({ intact }) => intact === false).map(({ part }) => part);
    expect(broken).toEqual(expect.arrayContaining(["variables", "weights"]));
  });
});
