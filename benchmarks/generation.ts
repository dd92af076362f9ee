// How fast is generation, compared with transformers' generate (torch), node-llama-cpp and transformers.js?
// All sides complete the same prompts with the same weights and number of threads, greedily and sampled (temperature 1, top-p 0.95).
// They take turns: a batch of one prompt, and a batch of sixteen with different lengths. Prints tokens per second, CPU time per token,
// and the ratios to the peers. With compiled kernels it also prints how fast the machine reads memory, and at which rate a batch reads
// the weights: a single sequence is bound by that.
//   npm run bench generation [-- --model FOLDER --tokens 64 --batches 1,16 --repeats 3 --threads 2 --device cpu]
//   npm run bench generation -- --peers llama,llama-bfloat16,transformers-js --sampling greedy
// With `--batches ""`, all sides only load the model. `--device cuda` runs transformers on a GPU.
// transformers needs a Python with the packages of benchmarks/peers/requirements.txt. PERIODIC_EVAL_PEERS_PYTHON is its path. The other
// peers need `npm run llama` and `npm run transformers`, and write their model files into .cache/peer-models.
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import * as tf from "@tensorflow/tfjs-core";
import { parseArgs } from "node:util";
import { machineLine } from "./doc-section.ts";
import { median } from "./median.ts";
import { openPeers, versionsOf } from "./peers/named-peers.ts";
import { type Comparison, peaksOf, ratioOf, sendResults } from "./report/results.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    backend: { type: "string", default: "tfjs-node" },
    tokens: { type: "string", default: "64" },
    batches: { type: "string", default: "1,16" },
    repeats: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    device: { type: "string", default: "cpu" },
    peers: { type: "string", default: "transformers" },
    sampling: { type: "string", default: "greedy,sampled" },
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
const peers = await openPeers(values.peers, values.model, [values.threads, values.device]);

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

interface Outcome {
  readonly seconds: number;
  readonly cpu_seconds: number;
  readonly tokens: readonly (readonly number[])[];
}

async function ours(prompts: readonly (readonly number[])[], isSampled: boolean): Promise<Outcome> {
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
    cpu_seconds: (user + system) / 1e6,
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
const notes: string[] = [];
/** At which rate each kind of work reads weights. */
const rates: string[] = [];
// Before the model has freed the float32 values.
const bytesPerStep = hasKernels ? weightBytes() : 0;
for (const batch of values.batches.split(",").filter(Boolean).map(Number)) {
  const prompts = promptsOf(batch);
  for (const sampling of values.sampling.split(",")) {
    const isSampled = sampling === "sampled";
    const work = `batch ${batch}, ${sampling}`;
    const rounds: { readonly ours: Outcome; readonly theirs: readonly Outcome[] }[] = [];
    // The first repeat warms up: it builds graphs and allocates memory.
    for (let repeat = -1; repeat < repeats; repeat++) {
      const mine = await ours(prompts, isSampled);
      const theirs: Outcome[] = [];
      for (const peer of peers)
        theirs.push(await peer.ask<Outcome>({ prompts, new_tokens: newTokens, sampled: isSampled }));
      if (repeat >= 0) rounds.push({ ours: mine, theirs });
    }
    const mine = rounds.map((round) => round.ours);
    const rate = (outcomes: readonly Outcome[]) =>
      ((batch * newTokens) / median(outcomes.map(({ seconds }) => seconds))).toFixed(1);
    // Other work on the machine hardly changes the CPU time.
    const cpuTime = (outcomes: readonly Outcome[]) => median(outcomes.map(({ cpu_seconds: cpu }) => cpu));
    const perToken = ((1000 * cpuTime(mine)) / (batch * newTokens)).toFixed(1);
    const fastest = Math.min(...mine.map(({ seconds }) => seconds));
    const reached = (bytesPerStep * newTokens) / fastest / 1e9;
    rates.push(`${reached.toFixed(1)} GB/s (${work})`);
    console.log(`${work}: ${rate(mine)} tokens per second, ${perToken} ms of CPU time per token`);
    const equal: string[] = [];
    for (const [at, { name }] of peers.entries()) {
      const theirs = rounds.map((round) => round.theirs[at]!);
      const comparison: Comparison = {
        name: work,
        unit: "seconds",
        ratio: "speed",
        peer: name,
        ours: mine.map(({ seconds }) => seconds),
        peers: theirs.map(({ seconds }) => seconds),
      };
      comparisons.push(comparison);
      const { median: ratio, least, greatest } = ratioOf(comparison);
      const cpu = (cpuTime(mine) / cpuTime(theirs)).toFixed(2);
      console.log(
        `  ${name}: ${rate(theirs)} tokens per second; ours ${ratio.toFixed(2)} × as fast (${least.toFixed(2)}–${greatest.toFixed(2)}), with ${cpu} × the CPU time`,
      );
      // The sides sample from different streams, so that only their speed can be compared.
      if (isSampled) continue;
      const alike = alikeText(mine[0]!.tokens, theirs[0]!.tokens);
      console.log(`    ${alike} before the first difference`);
      equal.push(`${alike} (${name})`);
    }
    if (equal.length > 0)
      notes.push(`Greedy tokens before the first difference, ${batch} at once: ${equal.join(", ")}.`);
  }
}
const peaks = peaksOf(peers);
// After the peaks, because it allocates much more than a model.
if (hasKernels && rates.length > 0) {
  const note = `Weights are read at ${rates.join(", ")}; the machine reads ${readBandwidth().toFixed(1)} GB/s.`;
  console.log(note);
  notes.push(note);
}
sendResults({
  machine: [machineLine(backend), ...versionsOf(peers)].join(", "),
  comparisons,
  peaks,
  notes,
});
for (const peer of peers) peer.close();

/** Returns how many tokens are equal before the first difference of each completion. */
function alikeText(mine: Outcome["tokens"], theirs: Outcome["tokens"]): string {
  const equal = mine.map((ids, row) => {
    const at = ids.findIndex((id, index) => id !== theirs[row]![index]);
    return at === -1 ? ids.length : at;
  });
  return `${equal.reduce((sum, count) => sum + count, 0)} of ${mine.length * newTokens} tokens`;
}
