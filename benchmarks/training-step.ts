/*
 * How long is one training step, forward and backward without an optimizer, and where does it go?
 *
 *   npm run bench training-step [-- --backend wasm --layers 3 --mlp 256 --steps 8]
 *
 * A Llama of vocabulary 1024, hidden 128, 4 heads, tied, on 16 sequences of 64 tokens, the loss on every position. Prints
 * the median and the range over the steps, the processor's seconds (for a machine that others use too), and the time by kernel of one profiled step. Where it was last run:
 * docs/decisions/2026-11-21-wasm-kernels.md.
 */
import { parseArgs } from "node:util";
import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { crossEntropySum } from "@periodic-eval/trainers";

const { values: options } = parseArgs({
  options: {
    backend: { type: "string", default: "wasm" },
    layers: { type: "string", default: "3" },
    mlp: { type: "string", default: "256" },
    batch: { type: "string", default: "16" },
    tokens: { type: "string", default: "64" },
    scored: { type: "string", default: "1" },
    steps: { type: "string", default: "8" },
  },
});
const [layers, mlp, batch, tokens, steps] = ["layers", "mlp", "batch", "tokens", "steps"].map((key) =>
  Number(options[key as keyof typeof options]),
) as [number, number, number, number, number];

const { name } = await useBackend({ backend: options.backend });
const model = createCausalLM(
  {
    model_type: "llama",
    vocab_size: 1024,
    hidden_size: 128,
    intermediate_size: mlp,
    num_hidden_layers: layers,
    num_attention_heads: 4,
    max_position_embeddings: 512,
    tie_word_embeddings: true,
  },
  { seed: "benchmark" },
);
const parameters = model.trainables().reduce((sum, { size }) => sum + size, 0);
const positions = Math.round(batch * tokens * Number(options.scored));
const numbers = (length: number, of: (i: number) => number) => Int32Array.from({ length }, (_, i) => of(i));
const ids = tf.tensor2d(
  numbers(batch * tokens, (i) => (i * 37) % 1024),
  [batch, tokens],
  "int32",
);
const rows = tf.tensor1d(
  numbers(positions, (i) => i),
  "int32",
);
const targets = tf.tensor1d(
  numbers(positions, (i) => (i * 37 + 37) % 1024),
  "int32",
);
const variables = [...model.trainables()];
/** In nats over all positions. */
const lossSum = () =>
  crossEntropySum(
    model.trainingLogits(ids, rows, () => () => 0.5),
    targets,
  );

let forwardSeconds: number[] = [];
let stepSeconds: number[] = [];
let processorSeconds: number[] = [];
let loss = 0;
for (let step = 0; step < steps + 2; step++) {
  const start = performance.now();
  const processor = process.cpuUsage();
  let forward = 0;
  const { value, grads } = tf.variableGrads(() => {
    const sum = lossSum();
    sum.dataSync();
    forward = performance.now() - start;
    return sum;
  }, variables);
  grads[variables[0]!.name]!.dataSync();
  stepSeconds.push((performance.now() - start) / 1000);
  forwardSeconds.push(forward / 1000);
  const { user, system } = process.cpuUsage(processor);
  processorSeconds.push((user + system) / 1e6);
  loss = value.dataSync()[0]! / positions;
  tf.dispose([value, grads]);
}
// The first two compile.
stepSeconds = stepSeconds.slice(2).sort((a, b) => a - b);
forwardSeconds = forwardSeconds.slice(2).sort((a, b) => a - b);
processorSeconds = processorSeconds.slice(2).sort((a, b) => a - b);
const middle = (sorted: number[]) => sorted[sorted.length >> 1]!.toFixed(3);
console.log(
  `${name}: ${(parameters / 1e6).toFixed(2)} M parameters, ${layers} layers, MLP ${mlp}, ${batch}×${tokens}`,
);
console.log(
  `step ${middle(stepSeconds)} s (${stepSeconds[0]!.toFixed(3)}–${stepSeconds.at(-1)!.toFixed(3)}), ` +
    `of the processor ${middle(processorSeconds)} s, forward ${middle(forwardSeconds)} s, loss ${loss.toFixed(4)}, tensors ${tf.memory().numTensors}`,
);

const profile = await tf.profile(() => {
  const { value, grads } = tf.variableGrads(lossSum, variables);
  tf.dispose([value, grads]);
});
const byKernel = new Map<string, { count: number; milliseconds: number }>();
for (const kernel of profile.kernels) {
  const entry = byKernel.get(kernel.name) ?? { count: 0, milliseconds: 0 };
  entry.count++;
  entry.milliseconds += Number(await kernel.kernelTimeMs);
  byKernel.set(kernel.name, entry);
}
const sorted = [...byKernel].sort(([, a], [, b]) => b.milliseconds - a.milliseconds);
for (const [kernel, { count, milliseconds }] of sorted.slice(0, 14)) {
  console.log(
    `${kernel.padEnd(28)} ${String(count).padStart(5)} × ${milliseconds.toFixed(1).padStart(8)} ms`,
  );
}
