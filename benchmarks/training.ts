// How long does a whole training step take (forward, backward, norm, clipping, AdamW), compared with PyTorch?
// Both sides take the same steps with the same weights and data, interleaved: this library, and transformers and PEFT on PyTorch
// with the same number of threads.
//   gpt     a GPT-2 of 929 k weights: vocabulary 2048, hidden 128, 2 layers, untied head; 16 × 64 tokens, all trained
//   smollm2 SmolLM2-135M with LoRA (rank 8, all linear maps); 4 × 256 tokens
//   full    SmolLM2-135M, all weights; 8 × 256 tokens
//   embedded  the embedded model with LoRA; 2 × 16 tokens, for backends that are slow here
//   npm run bench training [-- --backend tfjs-node --models gpt,smollm2 --rounds 5 --turn 3 --threads 2 --profile]
// A round is `turn` steps of each side, after one round of warm-up. Prints the medians and ranges of all steps, their ratio,
// our CPU seconds, the differences of losses and norms, and with --profile our time by kernel, if the backend reports it.
// The comparison needs a Python with the packages of benchmarks/peers/requirements.txt. PERIODIC_EVAL_PEERS_PYTHON is its path;
// --no-peer skips it, `--device cuda` runs it on a GPU. --naive adds the GPT step written with the standard operations of TensorFlow.js.
// Last results: benchmarks/results/training.md.
import type { TrainableLM } from "@periodic-eval/tfjs";
import { createCausalLM, loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, clipFactor, GradientNorm, tokenLosses, total } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs-core";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { microWorld } from "../examples/micro-world/paths.ts";
import { machineLine } from "./doc-section.ts";
import { median } from "./median.ts";
import { naiveGpt, type NaiveTraining } from "./peers/naive-gpt.ts";
import { openPeer, type Peer } from "./peers/peer.ts";
import { secondsPerProduct } from "./products.ts";
import { peaksOf, sendResults, type Comparison, type Results } from "./report/results.ts";

const { values } = parseArgs({
  allowNegative: true,
  options: {
    backend: { type: "string", default: "tfjs-node" },
    models: { type: "string", default: "gpt,smollm2" },
    smollm2: { type: "string", default: ".cache/smollm2-135m-instruct" },
    rounds: { type: "string", default: "5" },
    turn: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    device: { type: "string", default: "cpu" },
    peer: { type: "boolean", default: true },
    naive: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
  },
});
// TensorFlow and the wasm backend read these variables at start-up.
process.env["TF_NUM_INTRAOP_THREADS"] ??= values.threads;
process.env["TF_NUM_INTEROP_THREADS"] ??= values.threads;
process.env["PERIODIC_EVAL_WASM_THREADS"] ??= values.threads;
const [rounds, turn] = [Number(values.rounds), Number(values.turn)];
const hyper = {
  learning_rate: 1e-3,
  betas: [0.9, 0.999],
  epsilon: 1e-8,
  weight_decay: 0.01,
  max_grad_norm: 1,
} as const;

interface Case {
  readonly model: TrainableLM;
  /** The arguments of the peer. */
  readonly folders: { readonly model: string; readonly adapter: string | null };
  readonly batch: readonly (readonly number[])[];
  /** The same step with the standard operations of TensorFlow.js. */
  readonly naive?: () => NaiveTraining;
  /** The weights that multiply every token, all trained. */
  readonly multiplied?: readonly tf.Tensor2D[];
}

const text = readFileSync(new URL("../LICENSE", import.meta.url), "utf8");

const cases: Readonly<Record<string, (folder: string) => Promise<Case>>> = {
  async gpt(folder) {
    const config = {
      model_type: "gpt2",
      architectures: ["GPT2LMHeadModel"],
      vocab_size: 2048,
      n_positions: 64,
      n_embd: 128,
      n_layer: 2,
      n_head: 4,
      tie_word_embeddings: false,
      // No dropout on either side: the masks would differ.
      embd_pdrop: 0,
      resid_pdrop: 0,
      attn_pdrop: 0,
    };
    const model = createCausalLM(config, { seed: "benchmark" });
    await model.save(folder);
    const characters = Array.from(text, (character) => character.codePointAt(0)! % 128);
    // Pairs of characters, so that the whole vocabulary is used.
    const ids = characters.map((code, i) => (16 * code + characters[i + 1]!) % 2048);
    const weights = () => new Map(model.weights().map((weight) => [weight.name, weight.read()]));
    return {
      model,
      folders: { model: folder, adapter: null },
      batch: rowsOf(ids, 16, 64),
      naive: () => naiveGpt(weights(), { heads: config.n_head, layers: config.n_layer }, hyper.learning_rate),
      multiplied: model
        .trainables()
        .filter(
          (weight): weight is tf.Variable<tf.Rank.R2> => weight.rank === 2 && !/wte|wpe/.test(weight.name),
        ),
    };
  },

  async full() {
    const tokenizer = await loadTokenizer(values.smollm2);
    return {
      model: await loadCausalLM(values.smollm2),
      folders: { model: values.smollm2, adapter: null },
      batch: rowsOf(tokenizer.encode(text), 8, 256),
    };
  },

  smollm2: (folder) => adapterCase(values.smollm2, folder, [4, 256]),
  embedded: (folder) => adapterCase(microWorld(), folder, [2, 16]),
};

async function adapterCase(base: string, folder: string, size: readonly [number, number]): Promise<Case> {
  const model = withLora(await loadCausalLM(base), { rank: 8 });
  await model.save(folder);
  const tokenizer = await loadTokenizer(base);
  return {
    model,
    folders: { model: base, adapter: folder },
    batch: rowsOf(tokenizer.encode(text), ...size),
  };
}

const rowsOf = (ids: readonly number[], batch: number, length: number) =>
  Array.from({ length: batch }, (_, row) => ids.slice(row * length, (row + 1) * length));

/** Results, one entry per step. */
interface Steps {
  readonly seconds: readonly number[];
  readonly losses: readonly number[];
  readonly norms: readonly number[];
}

interface Side {
  step(): Promise<{ readonly loss: number; readonly norm: number }>;
  dispose(): void;
}

/** Creates this library's side. The targets are all tokens of a row except the first. */
function ours(model: TrainableLM, batch: readonly (readonly number[])[]): Side {
  const length = batch[0]!.length - 1;
  const fed = batch.flatMap((row) => row.slice(0, -1));
  const next = batch.flatMap((row) => row.slice(1));
  const { betas, epsilon, weight_decay: weightDecay } = hyper;
  const optimizer = new AdamW(model.trainables(), { betas, epsilon, weightDecay });
  const gradientNorm = new GradientNorm();
  const ids = tf.tensor2d(fed, [batch.length, length], "int32");
  const rows = tf.range(0, next.length, 1, "int32");
  const targets = tf.tensor1d(next, "int32");
  return {
    async step() {
      const { value, grads } = tf.variableGrads(
        () => total(tokenLosses(model, { ids, rows, targets }, () => () => 0.5)),
        [...model.trainables()],
      );
      const loss = (await value.data())[0]! / next.length;
      const norm = (await gradientNorm.of(Object.values(grads)))! / next.length;
      const scale = clipFactor(norm, hyper.max_grad_norm) / next.length;
      optimizer.apply(grads, hyper.learning_rate, scale);
      tf.dispose([value, grads]);
      return { loss, norm };
    },
    dispose() {
      optimizer.dispose();
      gradientNorm.dispose();
      tf.dispose([ids, rows, targets]);
    },
  };
}

/** Creates the naive side. It computes no norm and does not clip, so its step is slightly shorter. */
function naively(training: NaiveTraining, batch: readonly (readonly number[])[]): Side {
  const ids = tf.tensor2d(
    batch.flatMap((row) => row.slice(0, -1)),
    [batch.length, batch[0]!.length - 1],
    "int32",
  );
  const targets = tf.tensor1d(
    batch.flatMap((row) => row.slice(1)),
    "int32",
  );
  return {
    step: async () => ({ loss: await training.step(ids, targets), norm: 0 }),
    dispose() {
      training.dispose();
      tf.dispose([ids, targets]);
    },
  };
}

async function stepsOf(side: Side, count: number): Promise<Steps> {
  const steps = { seconds: [] as number[], losses: [] as number[], norms: [] as number[] };
  for (let i = 0; i < count; i += 1) {
    const began = performance.now();
    const { loss, norm } = await side.step();
    steps.seconds.push((performance.now() - began) / 1000);
    steps.losses.push(loss);
    steps.norms.push(norm);
  }
  return steps;
}

/** Seconds of each step, in rounds. */
type Rounds = readonly (readonly number[])[];

/** Steps whose losses are compared at least: both sides round differently, and each step makes the difference larger. */
const comparedSteps = 3;

interface Taken {
  readonly ours: Rounds;
  readonly peer: Rounds;
  readonly naive: Rounds;
  /** Our CPU seconds in all rounds. */
  readonly cpuSeconds: number;
  /** The largest relative difference between a loss of the first steps and the peer's. */
  readonly furthest: number;
}

/** Compares the sides, prints the times, and returns them with the median step of each round as one repeat. */
async function compare(name: string, { naive, ...each }: Case, peer: Peer | null): Promise<Results> {
  const { model, folders, batch } = each;
  const plain = values.naive && naive ? naively(naive(), batch) : null;
  const side = ours(model, batch);
  const trained = model.trainables().reduce((sum, { size }) => sum + size, 0);
  console.log(`${name}: ${trained} weights trained, ${batch.length} × ${batch[0]!.length} tokens`);
  await peer?.ask({ ...folders, hyper });
  const taken = await takeRounds(side, plain, (steps) => peer?.ask<Steps>({ ids: batch, steps }));
  printTimes(taken);
  plain?.dispose();
  const notes = values.profile ? await profile(side) : [];
  if (backend === "tfjs-node" && each.multiplied) notes.push(limitOf(each.multiplied, batch));
  side.dispose();
  model.dispose();
  const compared = (against: string, rounds: Rounds): Comparison[] => {
    const [ours, peers] = [taken.ours.map(median), rounds.map(median)];
    const of = { name: `${name}, one step`, unit: "seconds", ratio: "speed", peer: against } as const;
    return peers.length === 0 ? [] : [{ ...of, ours, peers }];
  };
  return {
    machine: [machineLine(backend), ...(peer ? [peer.versions] : [])].join(", "),
    comparisons: [...compared("PyTorch", taken.peer), ...compared("standard operations", taken.naive)],
    peaks: peaksOf(peer ? [{ ...peer, name: "PyTorch" }] : []),
    notes,
  };
}

/** Measures the matrix products of a step, one forward and two backward, at the speed that oneDNN reaches in the forward ones. */
function limitOf(weights: readonly tf.Tensor2D[], batch: Case["batch"]): string {
  const rows = batch.length * (batch[0]!.length - 1);
  const each = secondsPerProduct(weights, rows);
  const products = 3 * rows * weights.reduce((sum, { size }) => sum + size, 0);
  const note = `The matrix products alone take ${(1000 * each * products).toFixed(1)} ms at ${(2e-9 / each).toFixed(0)} GFLOP/s.`;
  console.log(`  ${note}`);
  return note;
}

/** Takes `turn` steps of each side in each round. The first round warms up: it builds graphs and allocates memory. */
async function takeRounds(
  side: Side,
  plain: Side | null,
  askPeer: (steps: number) => Promise<Steps> | undefined,
): Promise<Taken> {
  const seconds = { ours: [] as number[][], peer: [] as number[][], naive: [] as number[][] };
  let [cpuSeconds, furthest, tensors] = [0, 0, 0];
  for (let round = -1; round < rounds; round += 1) {
    const before = process.cpuUsage();
    const mine = await stepsOf(side, turn);
    const { user, system } = process.cpuUsage(before);
    const naive = plain && (await stepsOf(plain, turn));
    const theirs = await askPeer(turn);
    if (round === -1) tensors = tf.memory().numTensors;
    else {
      seconds.ours.push([...mine.seconds]);
      if (theirs) seconds.peer.push([...theirs.seconds]);
      if (naive) seconds.naive.push([...naive.seconds]);
      cpuSeconds += (user + system) / 1e6;
    }
    if (round === -1 && naive)
      console.log(`  step 1, loss ${mine.losses[0]!.toFixed(6)}, naively ${naive.losses[0]!.toFixed(6)}`);
    if (theirs && (round + 1) * turn < comparedSteps)
      furthest = Math.max(furthest, differenceOf(mine, theirs, round === -1));
  }
  if (tf.memory().numTensors !== tensors) throw new Error("steps leak tensors");
  return { ...seconds, cpuSeconds, furthest };
}

/** Returns the largest relative difference of the losses; prints those of losses and norms if asked to. */
function differenceOf(mine: Steps, theirs: Steps, isPrinted: boolean): number {
  const off = (of: "losses" | "norms", i: number) => Math.abs(mine[of][i]! / theirs[of][i]! - 1);
  for (const of of isPrinted ? (["losses", "norms"] as const) : [])
    for (const [i, expected] of theirs[of].entries())
      console.log(
        `  step ${i + 1}, ${of === "losses" ? "loss" : "norm"} ${mine[of][i]!.toFixed(6)}, torch ${expected.toFixed(6)}, difference ${off(of, i).toExponential(1)}`,
      );
  return Math.max(...theirs.losses.map((_, i) => off("losses", i)));
}

function printTimes({ cpuSeconds, furthest, ...all }: Taken): void {
  const [mine, theirs, naive] = [all.ours.flat(), all.peer.flat(), all.naive.flat()];
  const spread = (list: readonly number[]) =>
    `${median(list).toFixed(3)} s (${Math.min(...list).toFixed(3)}–${Math.max(...list).toFixed(3)})`;
  console.log(`  ours  ${spread(mine)}, CPU time ${(cpuSeconds / mine.length).toFixed(3)} s`);
  if (theirs.length > 0) {
    const ratio = median(mine) / median(theirs);
    const least = Math.min(...mine) / Math.min(...theirs);
    console.log(`  torch ${spread(theirs)}`);
    console.log(
      `  ours take ${ratio.toFixed(2)} × torch's time (fastest steps: ${least.toFixed(2)} ×); losses of the first steps differ by at most ${furthest.toExponential(1)}`,
    );
    if (!(furthest < 1e-4)) process.exitCode = 1;
  }
  if (naive.length > 0) {
    const ratio = median(naive) / median(mine);
    console.log(`  naive ${spread(naive)}: ours are ${ratio.toFixed(2)} × as fast`);
  }
}

/** Prints our time by kernel, and returns a sentence about the three slowest. */
async function profile(side: Side): Promise<string[]> {
  const { kernels } = await tf.profile(async () => void (await side.step()));
  const byKernel = new Map<string, { count: number; milliseconds: number }>();
  for (const { name, kernelTimeMs } of kernels) {
    const entry = byKernel.get(name) ?? { count: 0, milliseconds: 0 };
    entry.count += 1;
    entry.milliseconds += Number(await kernelTimeMs) || 0;
    byKernel.set(name, entry);
  }
  const sorted = [...byKernel].sort(([, a], [, b]) => b.milliseconds - a.milliseconds);
  for (const [kernel, { count, milliseconds }] of sorted.slice(0, 20)) {
    console.log(
      `    ${kernel.padEnd(28)} ${String(count).padStart(5)} × ${milliseconds.toFixed(1).padStart(8)} ms`,
    );
  }
  const all = sorted.reduce((sum, [, { milliseconds }]) => sum + milliseconds, 0);
  if (all === 0) return ["The backend reports no times of kernels."];
  const worst = sorted
    .slice(0, 3)
    .map(([kernel, { count, milliseconds }]) => `${kernel} (${count} ×) ${milliseconds.toFixed(1)} ms`);
  return [`Slowest kernels of a training step, of ${all.toFixed(1)} ms in kernels: ${worst.join(", ")}.`];
}

const { name: backend } = await useBackend({ backend: values.backend });
console.log(`${machineLine(backend)}, ${values.threads} threads`);
const peer = values.peer ? await openPeer("torch_training.py", [values.threads, values.device]) : null;
const folder = await mkdtemp(join(tmpdir(), "training-"));
try {
  const all: Results[] = [];
  for (const name of values.models.split(","))
    all.push(await compare(name, await cases[name]!(join(folder, name)), peer));
  sendResults({ ...all.at(-1)!, comparisons: all.flatMap(({ comparisons }) => comparisons) });
} finally {
  peer?.close();
  await rm(folder, { recursive: true });
}
