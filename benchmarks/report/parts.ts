/** A part of the report: one run of a benchmark. */
export interface Part {
  readonly name: string;
  readonly title: string;
  /** A description of the comparison, in Markdown. */
  readonly about: string;
  /** A file of benchmarks/ and its arguments. */
  readonly file: string;
  readonly args: readonly string[];
  /** The ratio to reach, by the name of the comparison, or by `name, peer` for one of several peers. */
  readonly targets?: Readonly<Record<string, number>>;
  /** False for a part that runs only when it is named. */
  readonly isDefault?: boolean;
  /** Why no machine has measured the part. */
  readonly whyMissing?: string;
}

const smollm2 = "SmolLM2-135M-Instruct, float32";
const resident =
  "peak resident memory of the whole process, libraries included, beside the peer's process. Each repeat starts new processes.";
const words = (line: string): readonly string[] => line.split(" ");
const world = "packages/cli/assets/micro-world";

/** All parts, in the order of the page. Each takes at most about twelve minutes on two idle cores. */
export const parts: readonly Part[] = [
  {
    name: "scoring",
    title: "Scoring without examples",
    about: `${smollm2}: log-likelihoods of 100 questions of ARC-Challenge, beside lm-evaluation-harness at its fastest batch size.`,
    file: "scoring.ts",
    args: words("--backends tfjs-node,peer --scorings packed --shots 0 --count 100 --repeats 5"),
    targets: { "0-shot, packed on tfjs-node, one question": 6 },
  },
  {
    name: "scoring-examples",
    title: "Scoring with five examples",
    about: `${smollm2}: the same with five examples before each of 20 questions.`,
    file: "scoring.ts",
    args: words("--backends tfjs-node,peer --scorings packed --shots 5 --count 20 --repeats 5"),
    targets: { "5-shot, packed on tfjs-node, one question": 12 },
  },
  {
    name: "generation",
    title: "Generation",
    about: `${smollm2}: 64 tokens after each prompt, beside \`generate\` of transformers on PyTorch.`,
    file: "generation.ts",
    args: words("--batches 1,16 --tokens 64 --repeats 5"),
    targets: {
      "batch 1, greedy": 1.5,
      "batch 1, sampled": 1.5,
      "batch 16, greedy": 2,
      "batch 16, sampled": 2,
    },
  },
  {
    name: "generation-node",
    title: "Generation beside packages for Node",
    about: `${smollm2}: the same prompts, beside node-llama-cpp (llama.cpp) and transformers.js (onnxruntime-node). llama.cpp keeps keys and values in half precision; in bfloat16 it also rounds activations.`,
    file: "generation.ts",
    args: words(
      "--batches 1,16 --tokens 64 --repeats 5 --sampling greedy --peers llama,llama-bfloat16,transformers-js",
    ),
    targets: { "batch 1, greedy, node-llama-cpp": 1, "batch 16, greedy, node-llama-cpp": 1.5 },
  },
  {
    name: "scoring-node",
    title: "Scoring beside packages for Node",
    about: `${smollm2}: log-likelihoods of 100 questions of ARC-Challenge, beside the same packages. node-llama-cpp returns the probabilities of the whole vocabulary for each token; the rows "only reading" leave them out, a lower bound for any scorer on llama.cpp.`,
    file: "scoring.ts",
    args: words(
      "--backends tfjs-node,peer --scorings packed --shots 0 --count 100 --repeats 5 --peers llama,llama-bfloat16,transformers-js",
    ),
    targets: {
      "0-shot, packed on tfjs-node, one question, node-llama-cpp": 1,
      "0-shot, packed on tfjs-node, one question, node-llama-cpp, only reading": 1,
    },
  },
  {
    name: "training-gpt",
    title: "Training a small GPT",
    about:
      "GPT-2 of 929,000 weights, all trained, 16 × 64 tokens: forward pass, backward pass, clipping and AdamW, beside PyTorch.",
    file: "training.ts",
    args: words("--models gpt --rounds 7 --turn 10"),
    targets: { "gpt, one step": 1.25 },
  },
  {
    name: "training-lora",
    title: "Training an adapter",
    about: `${smollm2}, LoRA of rank 8 on all linear maps, 4 × 256 tokens, beside PEFT on PyTorch.`,
    file: "training.ts",
    args: words("--models smollm2 --rounds 5 --turn 2"),
  },
  {
    name: "training-full",
    title: "Training all weights",
    about: `${smollm2}, all weights with AdamW, 8 × 256 tokens, beside PyTorch.`,
    file: "training.ts",
    args: words("--models full --rounds 5 --turn 1"),
    targets: { "full, one step": 1 / 1.3 },
  },
  {
    name: "wasm-training",
    title: "Training on WebAssembly",
    about:
      "The step of the small GPT, beside the same step in TensorFlow.js' standard operations on the same backend.",
    file: "training.ts",
    args: words("--backend wasm --models gpt --rounds 7 --turn 2 --no-peer --naive"),
    targets: { "gpt, one step": 15 },
  },
  {
    name: "wasm-scoring",
    title: "Scoring on WebAssembly",
    about:
      "The embedded model of 0.4 million weights: log-likelihoods of 200 questions, beside lm-evaluation-harness on the same cores.",
    file: "scoring.ts",
    args: words(
      `--backends wasm,peer --scorings packed --shots 0 --count 200 --repeats 7 --model ${world} --questions ${world}/questions.jsonl`,
    ),
  },
  {
    name: "overhead",
    title: "Overhead of measuring",
    about:
      "600 steps of the embedded model on the fastest backend, with 200 questions every 20 %, beside the same steps without callbacks.",
    file: "overhead.ts",
    args: words("--arms none,capability --repeats 5"),
  },
  {
    name: "memory",
    title: "Memory of loading, scoring and generation",
    about: `${smollm2}: ${resident}`,
    file: "memory.ts",
    args: words("--work loading,scoring,generation --repeats 5"),
  },
  {
    name: "memory-training",
    title: "Memory of training",
    about: `${smollm2}, two steps: ${resident}`,
    file: "memory.ts",
    args: words("--work adapter,full --repeats 5"),
    targets: { "training all weights, 8 × 256 tokens": 1.3 },
  },
  {
    name: "gpu",
    title: "On a GPU",
    about: "The same work on the GPU of the machine, beside PyTorch on the same GPU: `npm run bench gpu`.",
    file: "gpu.ts",
    args: [],
    isDefault: false,
    whyMissing: "no machine so far had a GPU",
  },
];
