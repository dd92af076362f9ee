// The house: which folder holds what, and which way imports run. `npm run check` runs scripts/check-house.mjs against it.
// Later entries of a list may import earlier ones, never the other way round. ../CONTRIBUTING.md explains the folders.

/** The siblings that each package may import, by their public paths; helpers come from `@periodic-eval/core/internal`. */
export const packages = {
  core: [],
  safetensors: ["core"],
  models: ["core", "safetensors"],
  trainers: ["core", "safetensors"],
  remote: ["core"],
  loggers: ["core"],
  dashboard: ["core"],
  tasks: ["core"],
  feedback: ["core", "trainers", "remote"],
  cli: ["core", "dashboard", "trainers", "feedback", "tasks", "models", "remote", "loggers"],
};

/**
 * The rooms of each package's `src`, from the ground up: folders, and files that stand directly in `src`. A file belongs to
 * the longest entry that its path begins with. An `index.ts` is a public map: it imports any room, and no room imports it.
 */
export const rooms = {
  core: [
    "errors.ts",
    "contracts/",
    "internal/",
    "random/",
    "schedule/",
    "statistics/",
    "model/",
    "tokenizer/",
    "guard/",
    "grading/",
    "snapshots/",
    "snapshots/storage/",
    "hub/",
    "console/",
    "callback/",
    "evaluations/kit/",
    "evaluations/prompting/",
    "config/block/",
    "evaluations/capability/",
    "evaluations/alignment/",
    "evaluations/leakage/",
    "evaluations/margin/",
    "evaluations/kl/",
    "session/budget/",
    "session/records/",
    "session/window/",
    "session/loop/",
    "config/",
    "tfjs/causal-lm/",
    "tfjs/batching/",
    "tfjs/scoring/",
    "tfjs/generation/",
    "tfjs/guards/",
    "tfjs/",
    "testing/",
  ],
  models: [
    "folder/",
    "hub/",
    "backend/",
    "ops/",
    "graph/",
    "decoder/",
    "families/config/",
    "families/",
    "checkpoint/",
    "lora/",
    "outline/",
    "tokenizer/",
    "shared.ts",
    "open-checkpoint.ts",
    "transformers/",
    "judges/",
  ],
  trainers: [
    "losses/",
    "optimizer/",
    "checkpoint/",
    "data/",
    "loop/",
    "measuring/",
    "trainer/",
    "sft/",
    "dpo/",
    "sdpo/",
    "pipeline/",
  ],
  tasks: [
    "documents/",
    "families/",
    "ifeval/text/",
    "ifeval/",
    "tasks/",
    "benchmark/verifiers/",
    "benchmark/stores/",
    "benchmark/",
    "comparisons/",
    "evaluations-of.ts",
    "suite/",
    "harness/",
    "results/",
    "evaluator/",
    "audit/",
  ],
  loggers: [
    "json-number.ts",
    "scalars.ts",
    "options.ts",
    "lines/",
    "outbox/",
    "console/",
    "tensorboard/",
    "mlflow/",
    "wandb/",
  ],
  cli: ["terminal/", "demo/", "config/", "run/", "commands/", "program.ts", "main.ts"],
  dashboard: ["html/", "charts/", "run/", "results/", "feedback/", "server/"],
  feedback: [
    "sandbox/",
    "config/",
    "preferences/",
    "graders/",
    "metrics/",
    "engine/",
    "harness/",
    "service/",
  ],
  remote: ["http/", "models/", "judges/", "engine/", "checkpoints/"],
  safetensors: ["float-formats.ts", "dtypes.ts", "damaged.ts", "header.ts", "read.ts", "write.ts"],
};

/** Packages and modules that a room of core may import; everywhere else in core they are forbidden, dynamic imports too. */
export const outsideOfCore = [
  { pattern: /^node:/, allowedIn: ["snapshots/storage/", "hub/", "config/", "testing/"] },
  { pattern: /^@tensorflow\//, allowedIn: ["tfjs/", "testing/"] },
  { pattern: /^(mathjs|node:https?|undici|axios|hono)$/, allowedIn: [] },
];

/** Rooms that only public maps may import: `tfjs` loads TensorFlow.js, `testing` is for users' test files. */
export const subpathsOnly = { core: ["tfjs/", "testing/"], dashboard: ["server/"] };

/** Values (functions, classes, constants) that the root of core exports. */
export const maximumRootValues = 45;
