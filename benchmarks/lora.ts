/*
 * How much does a LoRA training step cost, compared with training every weight? Forward, backward and AdamW.
 *
 *   npm run bench lora [-- --backend wasm --layers 6 --hidden 256 --rank 8 --steps 8]
 *
 * The model is a Llama with a vocabulary of 4096 and tied embeddings. Each step uses 8 sequences of 128 tokens, with the loss on
 * every position. Both sides are interleaved on one model. Prints medians and ranges, the bytes held after the forward pass, and
 * the computed size of gradients and AdamW's two moments (12 bytes per parameter).
 * Last results: benchmarks/results/training.md.
 */
import { parseArgs } from "node:util";
import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";

const { values: options } = parseArgs({
  options: {
    backend: { type: "string", default: "wasm" },
    layers: { type: "string", default: "6" },
    hidden: { type: "string", default: "256" },
    rank: { type: "string", default: "8" },
    targets: { type: "string", default: "all-linear" },
    steps: { type: "string", default: "8" },
  },
});
const [layers, hidden, rank, steps] = [options.layers, options.hidden, options.rank, options.steps].map(
  Number,
) as [number, number, number, number];
const [batch, tokens, vocabSize] = [8, 128, 4096];

const { name } = await useBackend({ backend: options.backend });
const model = createCausalLM(
  {
    model_type: "llama",
    vocab_size: vocabSize,
    hidden_size: hidden,
    intermediate_size: 3 * hidden,
    num_hidden_layers: layers,
    num_attention_heads: hidden / 64,
    max_position_embeddings: 512,
    tie_word_embeddings: true,
  },
  { seed: "benchmark" },
);
const targetModules = options.targets === "all-linear" ? "all-linear" : options.targets.split(",");
const sides = [side("full", model), side("LoRA", withLora(model, { rank, targetModules }))];
const numbers = (of: (i: number) => number) => Int32Array.from({ length: batch * tokens }, (_, i) => of(i));
const ids = tf.tensor2d(
  numbers((i) => (i * 37) % vocabSize),
  [batch, tokens],
  "int32",
);
const rows = tf.tensor1d(
  numbers((i) => i),
  "int32",
);
const targets = tf.tensor1d(
  numbers((i) => (i * 37 + 37) % vocabSize),
  "int32",
);

function side(label: string, lm: TrainableLM) {
  const parameters = lm.trainables().reduce((sum, { size }) => sum + size, 0);
  return { label, lm, parameters, optimizer: new AdamW(lm.trainables()), seconds: [] as number[], memory: 0 };
}

// The first two steps warm up.
for (let step = -2; step < steps; step++) {
  for (const each of sides) {
    const { lm, optimizer, seconds } = each;
    const before = tf.memory().numBytes;
    const start = performance.now();
    const { value, grads } = tf.variableGrads(() => {
      const logits = lm.trainingLogits(ids, rows, () => () => 0.5);
      each.memory = tf.memory().numBytes - before;
      return crossEntropySum(logits, targets);
    }, [...lm.trainables()]);
    optimizer.apply(grads, 1e-4, 1 / (batch * tokens));
    lm.trainables()[0]!.dataSync();
    if (step >= 0) seconds.push((performance.now() - start) / 1000);
    tf.dispose([value, grads]);
  }
}
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
console.log(
  `${name}: ${layers} layers of ${hidden}, ${batch}×${tokens} tokens, rank ${rank}, ${options.targets}`,
);
for (const { label, parameters, seconds, memory } of sides) {
  const sorted = seconds.sort((a, b) => a - b);
  console.log(
    `${label.padEnd(5)} ${(parameters / 1e6).toFixed(2).padStart(6)} M trained, step ${sorted[sorted.length >> 1]!.toFixed(3)} s ` +
      `(${sorted[0]!.toFixed(3)}–${sorted.at(-1)!.toFixed(3)}), held after forward ${megabytes(memory)}, ` +
      `gradients and optimizer, computed: ${megabytes(12 * parameters)}`,
  );
}
