// How fast is generation, compared with transformers' generate (torch)?
// Both sides complete the same prompts with the same weights and number of threads, greedily and sampled (temperature 1, top-p 0.95).
// They take turns: a batch of one prompt, and a batch of sixteen with different lengths. Prints tokens per second, CPU time per token,
// and the ratios to transformers. With compiled kernels it also prints how fast the machine reads memory, and at which rate a batch reads
// the weights: a single sequence is bound by that.
//   npm run bench generation [-- --model FOLDER --tokens 64 --batches 1,16 --repeats 3 --threads 2 --device cpu]
// With `--batches ""`, both sides only load the model. `--device cuda` runs the peer on a GPU.
// The comparison needs a Python with the packages of benchmarks/peers/requirements.txt. PERIODIC_EVAL_PEERS_PYTHON is its path.
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import * as tf from "@tensorflow/tfjs-core";
import { parseArgs } from "node:util";
import { machineLine } from "./doc-section.ts";
import { median } from "./median.ts";
import { openPeer } from "./peers/peer.ts";
import { type Comparison, peaksOf, sendResults } from "./report/results.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    backend: { type: "string", default: "tfjs-node" },
    tokens: { type: "string", default: "64" },
    batches: { type: "string", default: "1,16" },
    repeats: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    device: { type: "string", default: "cpu" },
  },
});
// TensorFlow and the wasm backend read these variables at start-up.
process.env["TF_NUM_INTRAOP_THREADS"] ??= values.threads;
process.env["TF_NUM_INTEROP_THREADS"] ??= values.threads;
process.env["PERIODIC_EVAL_WASM_THREADS"] ??= values.threads;
const [newTokens, repeats] = [Number(values.tokens), Number(values.repeats)];

const { name: backend } = await useBackend({ backend: values.backend });
const tokenizer = await loadTokenizer(values.model);
// Without stop tokens, both sides generate the same number of tokens.
const lm = await loadCausalLM(values.model);
const model = inMemory(lm, { ...tokenizer, stopIds: [] });
const peer = await openPeer("transformers_generation.py", [values.model, values.threads, values.device]);

const words =
  "The river winds past a mill, where an old man mends nets and tells whoever stops of the sea".split(" ");
/** Prompts of about 12 to 120 tokens. */
const promptsOf = (batch: number) =>
  Array.from({ length: batch }, (_, row) => {
    const text = Array.from(
      { length: 12 + row * 7 },
      (_word, at) => words[(at * (row + 1) + row) % words.length],
    );
    return tokenizer.encode(text.join(" "));
  });

async function ours(prompts: readonly (readonly number[])[], isSampled: boolean) {
  const how = isSampled ? { temperature: 1, topP: 0.95 } : { temperature: 0 };
  const requests = prompts.map((ids, row) => ({
    prompt: { ids },
    sampling: { maxNewTokens: newTokens, ...how, seed: String(row) },
  }));
  const [startTime, startCpu] = [performance.now(), process.cpuUsage()];
  const written = await model.generate(requests, { signal: new AbortController().signal });
  const { user, system } = process.cpuUsage(startCpu);
  return {
    seconds: (performance.now() - startTime) / 1000,
    cpuSeconds: (user + system) / 1e6,
    tokens: written.map(({ ids }) => ids!),
  };
}

const hasKernels = tf.getKernel("PeriodicHalve", tf.getBackend()) !== undefined;
const halvesOf = (w: tf.Tensor): tf.Tensor =>
  tf.engine().runKernel("PeriodicHalve", { w }, { transposed: 0 });

/** Returns the bytes of the weights that a step reads: half as many for those that are exactly bfloat16. */
function weightBytes(): number {
  const matrices = lm.weights().filter(({ variable }) => variable.rank === 2);
  const bytes = matrices.map(({ variable }) => {
    const halves = halvesOf(variable);
    halves.dispose();
    return variable.size * (halves.rank === 2 ? 2 : 4);
  });
  return bytes.reduce((sum, size) => sum + size, 0);
}

/** Reads 256 MiB with all threads, several times. Returns the best rate in GB/s. */
function readBandwidth(): number {
  // The kernel reads on until it finds the last number, which is not bfloat16.
  const w = tf.tidy(() =>
    tf
      .concat(
        [tf.ones([8191, 8192]), tf.fill([1, 8191], 1), tf.fill([1, 1], 1.1)].map((x) => tf.reshape(x, [-1])),
      )
      .reshape([8192, 8192]),
  );
  const seconds = Array.from({ length: 7 }, () => {
    const began = performance.now();
    halvesOf(w).dispose();
    return (performance.now() - began) / 1000;
  });
  w.dispose();
  return (4 * w.size) / Math.min(...seconds) / 1e9;
}

console.log(
  `${machineLine(backend)}, ${values.threads} threads; ${values.model}, ${newTokens} tokens per completion`,
);
const comparisons: Comparison[] = [];
for (const batch of values.batches.split(",").filter(Boolean).map(Number)) {
  const prompts = promptsOf(batch);
  for (const isSampled of [false, true]) {
    const seconds: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
    // Other work on the machine hardly changes the CPU time.
    const cpuSeconds: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
    let same = 0;
    // The first repeat warms up: it builds graphs and allocates memory.
    for (let repeat = -1; repeat < repeats; repeat++) {
      const mine = await ours(prompts, isSampled);
      if (repeat >= 0) {
        seconds.ours.push(mine.seconds);
        cpuSeconds.ours.push(mine.cpuSeconds);
      }
      if (peer === null) continue;
      const theirs = await peer.ask<{
        seconds: number;
        cpu_seconds: number;
        tokens: number[][];
      }>({
        prompts,
        new_tokens: newTokens,
        sampled: isSampled,
      });
      if (repeat >= 0) {
        seconds.peer.push(theirs.seconds);
        cpuSeconds.peer.push(theirs.cpu_seconds);
      }
      same = theirs.tokens.filter((ids, row) => ids.join() === mine.tokens[row]!.join()).length;
    }
    if (peer !== null)
      comparisons.push({
        name: `batch ${batch}, ${isSampled ? "sampled" : "greedy"}`,
        unit: "seconds",
        ratio: "speed",
        peer: "transformers",
        ours: seconds.ours,
        peers: seconds.peer,
      });
    const rate = (list: readonly number[]) => ((batch * newTokens) / median(list)).toFixed(1);
    // The two sides sample from different streams, so only their speed can be compared.
    const alike = isSampled ? "" : `; ${same} of ${batch} completions identical`;
    const comparison =
      peer === null
        ? ""
        : `; transformers ${rate(seconds.peer)}; ${(median(seconds.peer) / median(seconds.ours)).toFixed(2)} × as fast, with ${(median(cpuSeconds.ours) / median(cpuSeconds.peer)).toFixed(2)} × the CPU time${alike}`;
    const perToken = ((1000 * median(cpuSeconds.ours)) / (batch * newTokens)).toFixed(1);
    const reached = hasKernels ? (weightBytes() * newTokens) / Math.min(...seconds.ours) / 1e9 : 0;
    const reading = hasKernels
      ? `; reads weights at ${reached.toFixed(1)} GB/s, the machine ${readBandwidth().toFixed(1)}`
      : "";
    console.log(
      `batch ${batch}, ${isSampled ? "sampled" : "greedy"}: ${rate(seconds.ours)} tokens per second, ${perToken} ms of CPU time per token${comparison}${reading}`,
    );
  }
}
sendResults({
  machine: [machineLine(backend), ...(peer ? [peer.versions] : [])].join(", "),
  comparisons,
  peaks: peaksOf(peer),
});
peer?.close();
