// Adds measurements to a TensorFlow.js project: a layers model of characters, `model.fit`, early stopping.  Run: npm run example 13
import { PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { fitCallbacks, fromLayersModel, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { charTokenizer } from "@periodic-eval/models/tokenizer";
import * as tf from "@tensorflow/tfjs";
import { readFileSync } from "node:fs";
import { isShort, microWorld, runDir } from "./micro-world/paths.ts";

tf.enableProdMode(); // suppresses the TensorFlow.js banner
await tf.setBackend("cpu");
const [length, rows] = isShort ? [16, 4] : [64, 32];
const text = readFileSync(microWorld("questions.jsonl"), "utf8");
const tokenizer = charTokenizer(new Set(`${text}Question: Answer:\n`));
const ids = tokenizer.encode(text);
const x = tf.tensor2d(ids.slice(0, rows * length), [rows, length], "int32");
const y = tf.tensor3d(ids.slice(1, rows * length + 1), [rows, length, 1]);

const model = tf.sequential();
model.add(tf.layers.embedding({ inputDim: tokenizer.vocabSize, outputDim: 16, inputShape: [null] }));
model.add(tf.layers.gru({ units: 24, returnSequences: true }));
model.add(tf.layers.dense({ units: tokenizer.vocabSize, activation: "softmax" }));
model.compile({ optimizer: tf.train.adam(0.01), loss: "sparseCategoricalCrossentropy" });

const run = runDir("tensorflow-project");
const lm = fromLayersModel(model, { contextLength: 128 });
const subsample = { n: isShort ? 2 : 10, seed: 42 };
const callbacks = [
  // `cloze` needs no chat template.
  new PeriodicCapabilityCallback({ questions: microWorld("questions.jsonl"), method: "cloze", subsample }),
];
const guards = tfjsGuards(lm, model.optimizer);
await withSession(
  { run, maxSteps: null, model: inMemory(lm, tokenizer), guards, callbacks },
  async (session) => {
    const early = tf.callbacks.earlyStopping({ monitor: "loss", patience: 1 });
    const measuring = fitCallbacks(session, model);
    await model.fit(x, y, { epochs: isShort ? 2 : 5, batchSize: 4, callbacks: [early, measuring] });
  },
);
