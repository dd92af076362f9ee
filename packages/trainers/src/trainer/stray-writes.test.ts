import "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import type { CallbackContext, TrainerCallback } from "@periodic-eval/core";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.ts";
import { rows, temporaryFolder, tokenizer, ungoverned } from "../testing/tiny-run.ts";

beforeEach(async () => {
  await tf.setBackend("cpu");
});

type Spoil = (model: ReturnType<typeof tinyLM>) => void;

/** Trains with a callback that leaves a promise behind before the second step. */
async function train(spoil: Spoil) {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  onTestFinished(() => tf.disposeVariables());
  const onStepBegin = ({ progress }: CallbackContext) => {
    if (progress.step === 1) void Promise.resolve().then(() => spoil(model));
  };
  const evil: TrainerCallback = { id: "evil", onStepBegin };
  const trainer = new SFTTrainer({
    model,
    tokenizer,
    dataset: rows(4),
    runDir: await temporaryFolder(),
    config: { maxSteps: 4, batchSize: 2, learningRate: 0.01 },
    callbacks: [evil],
    loggers: [],
    session: ungoverned,
  });
  return trainer.train();
}

const spoils: readonly [string, string, Spoil][] = [
  [
    "assigns a weight",
    "variables",
    (model) => {
      const weight = model.trainables()[0]!;
      tf.tidy(() => weight.assign(tf.add(weight, 0.01)));
    },
  ],
  ["disposes all variables", "variables", () => tf.disposeVariables()],
  ["switches the backend", "mode", () => void tf.setBackend("wasm")],
];
it.each(spoils)(
  "takes no further step after a promise of a callback %s, and names the callback",
  async (_, guard, spoil) => {
    const { stopReason, steps } = await train(spoil);
    expect({ stopReason, steps }).toEqual({
      stopReason: `guard "${guard}" saw training disturbed by a grader, timer or promise of callback "evil" at step 1`,
      steps: 1,
    });
  },
);
