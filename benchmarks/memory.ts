// How much memory do loading, scoring, generation and training need, compared with lm-evaluation-harness, transformers and PyTorch?
// Each repeat runs another benchmark with little work, in two new processes: this library and its peer. Prints the peak resident
// memory of each process, libraries included, as median (minimum–maximum), and the ratio of the medians.
//   npm run bench memory [-- --work loading,scoring,generation,adapter,full --repeats 5 --backend tfjs-node]
// It needs what generation.ts, scoring.ts and training.ts need for a comparison, and Linux, which reports the peer's memory.
import { parseArgs } from "node:util";
import { oneOf } from "./one-of.ts";
import { ratioOf, sendResults, spreadOf, type Comparison } from "./report/results.ts";
import { runBenchmark } from "./report/run-benchmark.ts";

const { values } = parseArgs({
  options: {
    work: { type: "string", default: "loading,scoring,generation,adapter,full" },
    repeats: { type: "string", default: "5" },
    backend: { type: "string", default: "tfjs-node" },
  },
});

interface Work {
  readonly name: string;
  readonly peer: string;
  readonly file: string;
  readonly args: readonly string[];
}

const { backend } = values;
const scoring = ["--backends", `${backend},peer`, "--scorings", "packed", "--shots", "0", "--repeats", "1"];
const onBackend = ["--backend", backend];
const works: Readonly<Record<string, Work>> = {
  loading: {
    name: "loading",
    peer: "transformers",
    file: "generation.ts",
    args: [...onBackend, "--batches", ""],
  },
  scoring: {
    name: "scoring 24 questions",
    peer: "lm-evaluation-harness",
    file: "scoring.ts",
    args: [...scoring, "--count", "24"],
  },
  generation: {
    name: "generation, batch 16, 32 tokens",
    peer: "transformers",
    file: "generation.ts",
    args: [...onBackend, "--batches", "16", "--tokens", "32", "--repeats", "1"],
  },
  adapter: {
    name: "training an adapter, 4 × 256 tokens",
    peer: "PyTorch",
    file: "training.ts",
    args: [...onBackend, "--models", "smollm2", "--rounds", "1", "--turn", "1"],
  },
  full: {
    name: "training all weights, 8 × 256 tokens",
    peer: "PyTorch",
    file: "training.ts",
    args: [...onBackend, "--models", "full", "--rounds", "1", "--turn", "1"],
  },
};

const gibibytes = (bytes: number) => (bytes / 2 ** 30).toFixed(2);
const comparisons: Comparison[] = [];
let machine = "";
for (const { name, peer, file, args } of values.work.split(",").map((work) => oneOf("--work", work, works))) {
  const [ours, peers]: [number[], number[]] = [[], []];
  for (let repeat = 0; repeat < Number(values.repeats); repeat += 1) {
    const { results, exitCode } = await runBenchmark(file, args);
    if (exitCode !== 0) process.exitCode = 1;
    if (!results?.peaks) break;
    machine = results.machine;
    ours.push(results.peaks.ours);
    peers.push(...Object.values(results.peaks.peers));
  }
  if (ours.length < Number(values.repeats)) {
    console.log(`${name}: left out, because ${file} did not report the memory of both processes`);
    continue;
  }
  const comparison: Comparison = { name, unit: "bytes", ratio: "share", peer, ours, peers };
  comparisons.push(comparison);
  const text = (bytes: readonly number[]) => {
    const { median, least, greatest } = spreadOf(bytes);
    return `${gibibytes(median)} GiB (${gibibytes(least)}–${gibibytes(greatest)})`;
  };
  console.log(
    `${name}: ${text(ours)}; ${peer} ${text(peers)}; ${ratioOf(comparison).median.toFixed(2)} × the memory`,
  );
}
sendResults({ machine, comparisons });
