// How fast is scoring of ARC questions, compared with lm-evaluation-harness, node-llama-cpp and transformers.js?
// How far is it from the time that its matrix products alone take?
// Scores the same questions with the same weights, interleaved: packed and plain on tfjs-node, packed on wasm (a tenth of the
// questions; times are per question), and lm-evaluation-harness (HFLM, torch) with the same number of threads.
//   npm run bench scoring [-- --model FOLDER --questions ARC.jsonl --count 200 --shots 0,5 --repeats 3 --threads 2]
//   npm run bench scoring -- --backends wasm,peer --scorings packed --model packages/cli/assets/micro-world --questions …/questions.jsonl
//   npm run bench scoring -- --backends tfjs-node,peer --scorings packed --shots 0 --peers llama,llama-bfloat16,transformers-js
// llama.cpp also only reads the tokens, which is a lower bound: the package for Node hands over log-probabilities token by token.
// `--device cuda` runs the harness on a GPU.
// The harness needs a Python with the packages of benchmarks/peers/requirements.txt. PERIODIC_EVAL_PEERS_PYTHON is its path
// (default `python3`). The other peers need `npm run llama` and `npm run transformers`. The output says what is missing.
import { PeriodicEvalError, type LogLikelihoodRequest } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import * as tf from "@tensorflow/tfjs-core";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { machineLine } from "./doc-section.ts";
import { median } from "./median.ts";
import { secondsPerProduct } from "./products.ts";
import { openPeers, versionsOf, type NamedPeer } from "./peers/named-peers.ts";
import { type Comparison, peaksOf, sendResults } from "./report/results.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    questions: { type: "string", default: "../shared/data/arc_challenge/test.jsonl" },
    count: { type: "string", default: "200" },
    shots: { type: "string", default: "0,5" },
    repeats: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    backends: { type: "string", default: "tfjs-node,wasm,peer" },
    scorings: { type: "string", default: "packed,plain" },
    device: { type: "string", default: "cpu" },
    peers: { type: "string", default: "harness" },
  },
});
// TensorFlow and the wasm backend read these variables at start-up.
process.env["TF_NUM_INTRAOP_THREADS"] ??= values.threads;
process.env["TF_NUM_INTEROP_THREADS"] ??= values.threads;
process.env["PERIODIC_EVAL_WASM_THREADS"] ??= values.threads;
const [count, repeats] = [Number(values.count), Number(values.repeats)];
const backends = values.backends.split(",");
/** Beside a faster backend, wasm scores a tenth of the questions, once. */
const isBesideFaster = backends.some((backend) => backend !== "wasm" && backend !== "peer");
const wasmShare = isBesideFaster ? 10 : 1;

interface Question {
  readonly question: string;
  readonly choices: readonly string[];
  readonly choice_labels: readonly string[];
  readonly correct_answer: string;
}

const all = readFileSync(values.questions, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Question);

/** Prompts of `arc_challenge` as in lm-evaluation-harness; few-shot examples are the last questions of the file. */
function requestsOf(questions: readonly Question[], shots: number): LogLikelihoodRequest[] {
  const asked = ({ question }: Question) => `Question: ${question}\nAnswer:`;
  const answered = (item: Question) =>
    `${asked(item)} ${item.choices[item.choice_labels.indexOf(item.correct_answer)]}`;
  const examples = all
    .slice(all.length - shots)
    .map((item) => `${answered(item)}\n\n`)
    .join("");
  return questions.flatMap((item) =>
    item.choices.map((choice) => ({ context: { text: examples + asked(item) }, continuation: ` ${choice}` })),
  );
}

interface Outcome {
  readonly seconds: number;
  /** Null for an arm that only reads. */
  readonly sums: readonly number[] | null;
  readonly tokens: number | null;
  /** Multiplications of the matrix products: weights of the layers for each token, and of the head for each row of logits. */
  readonly products?: number;
}

interface Arm {
  readonly name: string;
  /** False for a peer. */
  readonly isOurs: boolean;
  readonly questions: number;
  /** Returns the seconds per multiplication in the products of the layers, measured now, on native TensorFlow. */
  readonly secondsPerProduct?: () => number;
  run(requests: readonly LogLikelihoodRequest[]): Promise<Outcome>;
}

const tokenizer = await loadTokenizer(values.model);

/** Returns one arm for each way of scoring; wasm beside a faster backend only scores packed. */
async function ourArms(backend: string): Promise<Arm[]> {
  try {
    await useBackend({ backend });
  } catch (error) {
    if (!PeriodicEvalError.is(error)) throw error;
    console.log(`${backend}: not available. ${error.message}`);
    return [];
  }
  const lm = await loadCausalLM(values.model);
  const { incremental, ...plain } = lm;
  const layerProducts = layerWeights(lm).reduce((sum, { size }) => sum + size, 0);
  const scorings = backend === "wasm" && isBesideFaster ? "packed" : values.scorings;
  return (scorings.split(",") as ("packed" | "plain")[]).map((scoring) => ({
    name: `${scoring} on ${backend}`,
    isOurs: true,
    questions: backend === "wasm" ? Math.ceil(count / wasmShare) : count,
    ...(backend === "tfjs-node" && { secondsPerProduct: () => secondsPerProduct(layerWeights(lm), 1024) }),
    async run(requests) {
      await useBackend({ backend });
      let [tokens, headProducts] = [0, 0];
      const logitsOf = (states: tf.Tensor2D) => {
        headProducts += states.size * lm.vocabSize;
        return incremental.logitsOf(states);
      };
      const packed = { ...lm, incremental: { ...incremental, logitsOf } };
      const isPacked = scoring === "packed";
      const model = inMemory(isPacked ? packed : plain, tokenizer);
      const began = performance.now();
      const scored = await model.logLikelihoods(requests, {
        signal: new AbortController().signal,
        countTokens: (more) => (tokens += more),
      });
      const seconds = (performance.now() - began) / 1000;
      return {
        seconds,
        tokens,
        ...(isPacked && { products: tokens * layerProducts + headProducts }),
        sums: scored.map(({ sumNats }) => sumNats),
      };
    },
  }));
}

const layerWeights = (lm: Awaited<ReturnType<typeof loadCausalLM>>): tf.Tensor2D[] =>
  lm
    .weights()
    .filter(({ name }) => /\blayers\.\d+\./.test(name))
    .map(({ read }) => read())
    .filter((weight): weight is tf.Tensor2D => weight.rank === 2);

function peerArm(peer: NamedPeer, onlyRead = false): Arm {
  let batchSize: number | null = null;
  return {
    name: onlyRead ? `${peer.name}, only reading` : peer.name,
    isOurs: false,
    questions: count,
    async run(requests) {
      const pairs = requests.map(({ context, continuation }) => [
        (context as { text: string }).text,
        continuation,
      ]);
      // llama.cpp chooses its batches itself.
      if (!isLlama(peer)) batchSize ??= await bestBatchSize(peer, pairs.slice(0, 96));
      const { seconds, sums } = await askPeer(peer, pairs, { batch_size: batchSize, only_read: onlyRead });
      return { seconds, sums, tokens: null };
    },
  };
}

const isLlama = ({ name }: NamedPeer): boolean => name.startsWith("node-llama-cpp");

const askPeer = (peer: NamedPeer, requests: readonly unknown[], how: object) =>
  peer.ask<{ seconds: number; sums: number[] | null }>({ requests, ...how });

/** Finds the fastest batch size on the first requests, and prints the seconds of each. */
async function bestBatchSize(peer: NamedPeer, requests: readonly unknown[]): Promise<number> {
  await askPeer(peer, requests.slice(0, 8), { batch_size: 8 });
  const taken: [seconds: number, batchSize: number][] = [];
  for (const batchSize of [1, 4, 8, 16, 32])
    taken.push([(await askPeer(peer, requests, { batch_size: batchSize })).seconds, batchSize]);
  const times = taken.map(([seconds, batchSize]) => `${batchSize}: ${seconds.toFixed(1)} s`);
  const [[, best]] = taken.toSorted(([a], [b]) => a - b) as [[number, number]];
  console.log(`${peer.name}, ${requests.length} requests by batch size: ${times.join(", ")}`);
  return best;
}

const peers = backends.includes("peer")
  ? await openPeers(values.peers, values.model, [values.threads, values.device])
  : [];
const ownBackends = backends.filter((backend) => backend !== "peer");
const arms: Arm[] = [];
for (const backend of ownBackends) arms.push(...(await ourArms(backend)));
for (const peer of peers) arms.push(peerArm(peer), ...(isLlama(peer) ? [peerArm(peer, true)] : []));

console.log(
  `${machineLine(ownBackends.join(" and "))}, ${values.threads} threads; ${values.model}, ${count} questions, ${repeats} repeats, interleaved`,
);
const comparisons: Comparison[] = [];
const notes: string[] = [];
for (const shots of values.shots.split(",").map(Number)) {
  const limits: number[] = [];
  const outcomes = new Map<string, Outcome[]>(arms.map(({ name }) => [name, []]));
  for (let repeat = 0; repeat < repeats; repeat++) {
    const turned = [...arms.slice(repeat % arms.length), ...arms.slice(0, repeat % arms.length)];
    for (const arm of turned) {
      // The slowest backend runs once.
      if (isBesideFaster && arm.name.endsWith("wasm") && repeat > 0) continue;
      if (arm === arms[0] && arm.secondsPerProduct) {
        await useBackend({ backend: "tfjs-node" });
        limits.push(arm.secondsPerProduct());
      }
      const outcome = await arm.run(requestsOf(all.slice(0, arm.questions), shots));
      outcomes.get(arm.name)!.push(outcome);
    }
  }
  report(shots, outcomes, limits);
  comparisons.push(...comparisonsOf(shots, outcomes));
}
sendResults({
  machine: [machineLine(ownBackends.join(" and ")), ...versionsOf(peers)].join(", "),
  comparisons,
  peaks: peaksOf(peers),
  notes,
});
for (const peer of peers) peer.close();

/** Compares each of our arms with each peer, in seconds per question. */
function comparisonsOf(shots: number, outcomes: ReadonlyMap<string, readonly Outcome[]>): Comparison[] {
  const perQuestion = ({ name, questions }: Arm) =>
    outcomes.get(name)!.map(({ seconds }) => seconds / questions);
  const theirs = arms.filter(({ isOurs }) => !isOurs);
  return arms
    .filter(({ isOurs }) => isOurs)
    .flatMap((arm) =>
      theirs.map((peer) => ({
        name: `${shots}-shot, ${arm.name}, one question`,
        unit: "seconds",
        ratio: "speed",
        peer: peer.name,
        ours: perQuestion(arm),
        peers: perQuestion(peer),
      })),
    );
}

function report(
  shots: number,
  outcomes: ReadonlyMap<string, readonly Outcome[]>,
  limits: readonly number[],
): void {
  const [first] = arms;
  if (first === undefined) return;
  const perQuestion = ({ name, questions }: Arm) =>
    median(outcomes.get(name)!.map(({ seconds }) => seconds)) / questions;
  const reference = outcomes.get(first.name)![0]!.sums!;
  console.log(
    `\n${shots}-shot, seconds per question (median of ${repeats}), and as a multiple of the first row`,
  );
  for (const arm of arms) {
    const [{ sums, tokens }] = outcomes.get(arm.name)! as [Outcome];
    const read =
      tokens === null ? "" : `${(tokens / arm.questions).toFixed(1).padStart(8)} tokens per question`;
    const difference =
      sums && Math.max(...sums.map((nats, index) => Math.abs(nats - (reference[index] ?? nats))));
    const scores =
      difference === null ? "" : `  scores within ${difference.toExponential(1)} nats of ${first.name}`;
    console.log(
      `${arm.name.padEnd(22)} ${perQuestion(arm).toFixed(4).padStart(8)}  × ${(perQuestion(arm) / perQuestion(first)).toFixed(2).padStart(6)}${read}${scores}`,
    );
    if (!arm.isOurs && difference !== null)
      notes.push(`${arm.name}: log-probabilities of answers within ${difference.toExponential(1)} nats.`);
  }
  const { products } = outcomes.get(first.name)![0]!;
  if (limits.length > 0 && products !== undefined) {
    const limit = (median(limits) * products) / first.questions;
    const speed = `${(2e-9 / median(limits)).toFixed(0)} GFLOP/s`;
    const note = `The matrix products alone take ${limit.toFixed(4)} s per question at ${speed}, which oneDNN reaches in the layers; ${first.name} takes ${(perQuestion(first) / limit).toFixed(2)} × as long.`;
    console.log(note);
    notes.push(note);
  }
  console.log(`tensors ${tf.memory().numTensors}, rss ${(process.memoryUsage().rss / 1e9).toFixed(2)} GB`);
}
