// Measures capability during Keras-style training: `model.fit` takes the session as its callbacks.  Run: npm run example 02
import { everyPercent, PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { fitCallbacks, fromLayersModel, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import * as tf from "@tensorflow/tfjs";
import { readFileSync } from "node:fs";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

tf.enableProdMode(); // suppresses the TensorFlow.js banner
await tf.setBackend("cpu"); // wasm has no kernel for the gradient of an embedding layer
const tokenizer = await loadTokenizer(microWorld());
const length = 96;

/** The smallest language model: a bigram model, from each token to the probabilities of the next. */
const model = tf.sequential({
  layers: [
    tf.layers.embedding({ inputDim: tokenizer.vocabSize, outputDim: 16, inputLength: length }),
    tf.layers.dropout({ rate: 0.1 }),
    tf.layers.dense({ units: tokenizer.vocabSize, activation: "softmax" }),
  ],
});
model.compile({ optimizer: tf.train.adam(3e-3), loss: "sparseCategoricalCrossentropy" });

const text = readFileSync(microWorld("coupling.jsonl"), "utf8");
const ids = tokenizer.encode(text.slice(0, isShort ? 1_000 : 5_000));
const count = Math.floor((ids.length - 1) / length);
const x = tf.tensor2d(ids.slice(0, count * length), [count, length], "int32");
const y = tf.tensor3d(ids.slice(1, count * length + 1), [count, length, 1]);

const lm = fromLayersModel(model);
const callbacks = [
  new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: isShort ? 2 : 20, seed: 42 },
    schedule: [everyPercent(isShort ? 50 : 20)],
  }),
];
await withSession(
  {
    run: runDir("model-fit"),
    maxSteps: null,
    model: inMemory(lm, tokenizer),
    guards: tfjsGuards(lm, model.optimizer),
    callbacks,
  },
  (session) =>
    model.fit(x, y, {
      epochs: isShort ? 1 : 2,
      batchSize: isShort ? 2 : 4,
      verbose: 0,
      callbacks: fitCallbacks(session, model),
    }),
);
