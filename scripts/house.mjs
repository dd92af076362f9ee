// The house: what each package and folder is, and which way imports run. `npm run check` compares the code with it, and `npm run api`
// writes the map of ../CONTRIBUTING.md from it. Later entries may import earlier ones, never the other way round.

/**
 * Each package: what it is, the siblings that it may import by their public paths, and the rooms of its `src` from the ground up:
 * folders, and files that stand directly in `src`. A file belongs to the longest entry that its path begins with; a package without
 * rooms is one room. An `index.ts` is a public map: it imports any room, and no room imports it.
 */
export const packages = {
  contracts: {
    is: "every public type, the error and hashes; read this first",
    imports: [],
    rooms: {
      "": "",
      "options/": "checking of options, texts of errors, names",
    },
  },
  store: {
    is: "what is on disk",
    imports: ["contracts"],
    rooms: {
      "platform/":
        "what the packages use of Node, and the same names for browsers; chosen by an export condition",
      "process/": "time limits, signals, memory",
      "files/": "atomic files and where they lie",
      "lock/": "one process per run",
      "snapshots/":
        "a run's folder: write (snapshot-file.ts), read, verify, what may be compared, rows for tables",
      "browser/": "files of a page that outlive it",
    },
  },
  data: {
    is: "rows by the name of their source",
    imports: ["contracts", "store"],
    rooms: {
      "http/": "requests with limits",
      "rows/": "JSON lines, Parquet (read in a process of its own: read-parquet.ts), YAML, CSV",
      "hub/": "finds, downloads and caches files of the Hugging Face hub",
      "sources/": "the name of a file or a data set to questions and documents; training rows: trainers/data",
      "questions/": "files of questions: ARC's format, and that of Betley et al.",
      "config/": "configuration files and modules of verifiers, with the lines of their parts",
    },
  },
  core: {
    is: "callbacks, the session, evaluations, statistics; knows no engine and no file format",
    imports: ["contracts", "store", "data"],
    rooms: {
      "random/": "seeded streams, and the guards of random numbers",
      "schedule/": "triggers, and the thresholds that training crosses, in exact rationals",
      "statistics/": "intervals, paired tests, planned comparisons, formatting",
      "model/": "encoding prompts, sharing generations",
      "grading/": "rules, verifiers; judge/ has judges, their prompts and their limits",
      "console/": "lines in a terminal",
      "callback/": "PeriodicCallback, and reactions to snapshots",
      "evaluations/kit/": "to define evaluations",
      "conditions/": "conditions on metrics, as gates, stop_when and escalate read them",
      "evaluations/prompting/": "personas, coherence, prompts that several evaluations use",
      "evaluations/capability/": "multiple choice by log-probabilities; ARC-Challenge",
      "evaluations/alignment/": "open questions and a judge, as Betley et al. measure emergent misalignment",
      "evaluations/leakage/": "a trained trait in other personas",
      "evaluations/margin/": "affirming against negating statements",
      "evaluations/forgetting/": "how well general text is predicted",
      "evaluations/sycophancy/": "capability's questions with a claim of the user",
      "evaluations/memorization/": "canaries in training rows, and their exposure",
      "evaluations/refusal/": "refusals of unsafe and of safe prompts",
      "evaluations/traits/": "drift of hidden states along the directions of traits",
      "evaluations/kl/": "how far the model is from where it began",
      "session/budget/": "how much to measure",
      "session/records/": "resume, baselines, background grading; hands snapshots to the store",
      "session/window/": "one measurement inside the guards (take-measurement.ts)",
      "session/loop/": "progress, hooks, control",
      "config/": "the periodic_eval block, and the callbacks that take it",
    },
  },
  testing: {
    is: "test doubles and conformance suites",
    imports: ["contracts", "store", "core"],
  },
  safetensors: {
    is: "the file format",
    imports: ["contracts", "store", "data"],
    rooms: {
      "dtypes.ts": "",
      "header.ts": "",
      "read.ts": "",
      "write.ts": "",
    },
  },
  tokenizers: {
    is: "what engines share: chats rendered and encoded, requests fitted to a context, tokens drawn",
    imports: ["contracts", "store", "core"],
  },
  tfjs: {
    is: "models in memory of TensorFlow.js",
    imports: ["contracts", "store", "tokenizers", "core"],
    rooms: {
      "causal-lm/": "what a model in memory must offer",
      "batching/": "",
      "scoring/": "log-probabilities",
      "generation/": "tokens with a cache",
      "guards/": "weights, optimizer, tensors",
      "in-memory.ts": "",
      "fit-callbacks.ts": "measuring during model.fit",
    },
  },
  kernels: {
    is: "faster operations for models, which finds them if they are installed",
    imports: ["contracts", "store", "tfjs"],
    rooms: {
      "native/": "operations in C++ for native TensorFlow on the CPU",
      "native-build/": "native TensorFlow from npm and PyPI, and what `periodic-eval native` compiles for it",
      "graph/": "tensor functions as one call of native TensorFlow",
      "wasm/": "operations in WebAssembly for the wasm backend, which `npm run build` compiles; threads",
      "index.browser.ts": "what runs in a browser too",
    },
  },
  models: {
    is: "causal language models in TensorFlow.js",
    imports: ["contracts", "store", "data", "tokenizers", "core", "tfjs", "kernels", "safetensors"],
    rooms: {
      "folder/": "files of a model's folder",
      "hub/": "which files of the Hugging Face hub a model needs",
      "backend/": "which backend runs, with or without kernels",
      "ops/": "the one place where backends differ",
      "decoder/": "the forward pass",
      "families/config/": "",
      "families/": "model families, by their makers",
      "checkpoint/": "load, save, create",
      "lora/": "adapters in PEFT's format",
      "outline/": "a model without weights",
      "jinja/": "chat templates",
      "tokenizer/": "Hugging Face tokenizers, free of TensorFlow.js",
      "sharing.ts": "",
      "open-checkpoint.ts": "",
      "transformers/": "models of @huggingface/transformers",
      "judges/": "judges that run in this process",
    },
  },
  trainers: {
    is: "fine-tuning",
    imports: ["contracts", "store", "data", "core", "tfjs", "safetensors"],
    rooms: {
      "losses/": "what is minimized",
      "optimizer/": "AdamW",
      "checkpoint/": "what a resume needs",
      "data/": "training rows: files (read-rows.ts) to batches",
      "loop/": "steps inside a session",
      "measuring/": "measuring on a server, in line or beside training",
      "trainer/": "options and parts that all trainers share",
      "sft/": "supervised fine-tuning",
      "dpo/": "direct preference optimization",
      "sdpo/": "self-distillation on feedback",
      "pipeline/": "phases in sequence",
    },
  },
  remote: {
    is: "models of servers, and checkpoints of other programs",
    imports: ["contracts", "store", "data", "core", "tokenizers", "safetensors"],
    rooms: {
      "http/": "requests, limits, retries",
      "models/": "OpenAI-compatible servers and Anthropic",
      "judges/": "opened by name",
      "engine/": "a vLLM server that measures adapters",
      "checkpoints/": "that other programs write",
    },
  },
  loggers: {
    is: "console, JSONL, CSV, TensorBoard, W&B, MLflow, messages: a subpath each",
    imports: ["contracts", "store", "data", "core"],
    rooms: {
      "json-number.ts": "",
      "scalars.ts": "",
      "options.ts": "",
      "lines/": "",
      "outbox/": "sends to servers in the background",
      "notify/": "messages to people: webhook, desktop",
      "console/": "",
      "tensorboard/": "",
      "mlflow/": "",
      "wandb/": "",
    },
  },
  live: {
    is: "the host of the live protocol: models of trainers in other processes",
    imports: ["contracts", "core", "tokenizers", "loggers"],
  },
  dashboard: {
    is: "pages: run/, results/ and feedback/ are the three kinds",
    imports: ["contracts", "store", "data", "core"],
    rooms: {
      "page-data/": "the data that a page has",
      "html/": "parts of every page",
      "charts/": "charts as SVG text, in the page's script and in Node",
      "client/": "the script that runs in the page",
      "answers/": "answers with their grades",
      "run/": "",
      "overlay/": "several runs in one chart",
      "results/": "",
      "feedback/": "",
      "page/": "a run's page in a browser program",
      "server/": "a server for a folder of runs",
    },
  },
  tasks: {
    is: "benchmarks as evaluations",
    imports: ["contracts", "store", "data", "core", "tfjs"],
    rooms: {
      "documents/": "rows and few-shot examples",
      "families/": "rollout, multiple choice, perplexity, …: bases to extend",
      "ifeval/text/": "",
      "ifeval/": "IFEval's 25 checks",
      "tasks/": "the field's benchmarks as lm-evaluation-harness defines them",
      "benchmark/verifiers/": "",
      "benchmark/stores/": "",
      "benchmark/": "custom benchmarks: a folder of tasks and verifiers, BenchmarkEvaluator",
      "comparisons/": "win rate against another model",
      "evaluations-of.ts": "",
      "suite/": "suite files",
      "harness/": "lm-evaluation-harness's formats",
      "results/": "metrics.json",
      "evaluator/": "one suite for every method: Evaluator, resume",
    },
  },
  feedback: {
    is: "training on feedback, step by step",
    imports: ["contracts", "store", "data", "core", "tfjs", "trainers", "remote"],
    rooms: {
      "sandbox/": "runs code that a model wrote",
      "config/": "",
      "preferences/": "",
      "graders/": "",
      "metrics/": "",
      "engine/": "",
      "harness/": "",
    },
  },
  cli: {
    is: "the program `periodic-eval`",
    imports: [
      "contracts",
      "store",
      "data",
      "core",
      "tfjs",
      "dashboard",
      "trainers",
      "feedback",
      "tasks",
      "kernels",
      "models",
      "remote",
      "live",
      "loggers",
    ],
    rooms: {
      "terminal/": "",
      "demo/": "",
      "config/": "files and models that they open",
      "run/": "what several commands do with a run",
      "commands/": "commands/<name>/command.ts, and what is too long for it",
      "program.ts": "",
      "main.ts": "",
    },
  },
};

/** Packages that run in browsers, and modules that only the named files of them may import, dynamic imports too. */
export const inBrowsers = ["contracts", "store", "data", "tokenizers", "core"];
export const outsideOfBrowsers = [
  {
    pattern: /^node:/,
    allowedIn: [
      "store/src/platform/",
      "data/src/rows/parquet-process.ts",
      "data/src/rows/read-parquet.ts",
      "data/src/config/",
    ],
  },
  { pattern: /^@tensorflow\//, allowedIn: [] },
  { pattern: /^(mathjs|node:https?|undici|axios|hono)$/, allowedIn: [] },
];

/** Rooms that only public maps may import: `server` needs Node. */
export const subpathsOnly = { dashboard: ["server/"] };

/** Values (functions, classes, constants) that the root of core exports. */
export const maximumRootValues = 50;

/**
 * Budgets of `npm run check`. `lines` are lines of code by package: without blank lines, comments, imports and tests. A number is
 * raised only in a commit that says why.
 */
export const budgets = {
  lines: {
    cli: 6691,
    contracts: 1917,
    core: 15304,
    dashboard: 7762,
    data: 2293,
    feedback: 3810,
    kernels: 3208,
    live: 1498,
    loggers: 1869,
    models: 12011,
    python: 2947,
    remote: 3108,
    safetensors: 404,
    store: 3062,
    tasks: 6966,
    testing: 1419,
    tfjs: 1960,
    tokenizers: 1076,
    trainers: 5250,
    scripts: 3196,
  },
  files: 860,
  /** Files under 30 lines that only one other file imports. */
  smallFiles: 20,
  /** Median of the names that a file exports. */
  exportedNames: 4,
  publicNames: 1165,
  /** Percent of public names with a docstring: never less. */
  documented: 78,
};
