// How much memory do loading, scoring, generation and training need, beside lm-evaluation-harness, transformers and PyTorch?
// Runs the other benchmarks with little work, each in a process of its own beside its peer's, and reads the highest resident size of both.
//   npm run bench memory [-- --work loading,scoring,generation,adapter,full --repeats 5]
// Sizes are of whole processes: our libraries take about 0.2 GiB, PyTorch with transformers 0.6.
import { parseArgs } from "node:util";
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
const scoring = ["--engines", `${backend},peer`, "--scorings", "packed", "--shots", "0", "--repeats", "1"];
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
for (const { name, peer, file, args } of values.work.split(",").map((work) => works[work]!)) {
  const [ours, peers]: [number[], number[]] = [[], []];
  for (let repeat = 0; repeat < Number(values.repeats); repeat += 1) {
    const { results } = await runBenchmark(file, args);
    if (!results?.peaks) break;
    machine = results.machine;
    ours.push(results.peaks.ours);
    peers.push(results.peaks.peer);
  }
  if (ours.length === 0) continue;
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
