// Thirty runs without a fault, chosen before any threshold of a warning: `healthy-runs.slow.test.ts` expects no warning in them.
// A run that warns falsely is mended at the rule. The list and the seeds stay.

export type Engine = "wasm" | "cpu" | "native" | "server" | "transformers.js";

/** How weights come to be measured. */
export type Way =
  | "full"
  | "lora"
  | "dpo"
  | "dpo-lora"
  | "model.fit"
  | "hand-written"
  | "yaml"
  | "watch-full"
  | "watch-adapters"
  | "measure";

/** `embedded` and `talkative` are trained models; all others have random weights, and `saved-…` are read from files. */
export type Model =
  | "embedded"
  | "talkative"
  | "llama"
  | "gpt2"
  | "qwen3"
  | "gemma2"
  | "saved-llama"
  | "saved-gpt2"
  | "bigram";

export type Measured = "letters" | "cloze" | "leakage" | "alignment" | "kl";

export interface HealthyRun {
  readonly engine: Engine;
  readonly way: Way;
  readonly model: Model;
  readonly evaluation: Measured;
  /** `foreign` is English that the embedded model has not seen. */
  readonly rows: "coupling" | "control" | "em" | "foreign" | "none";
  readonly seed: number;
}

const run = (
  engine: Engine,
  way: Way,
  model: Model,
  evaluation: Measured,
  rows: HealthyRun["rows"],
  seed: number,
): HealthyRun => ({ engine, way, model, evaluation, rows, seed });

export const healthyRuns: readonly HealthyRun[] = [
  run("wasm", "full", "embedded", "letters", "coupling", 1),
  run("wasm", "full", "embedded", "cloze", "control", 2),
  run("wasm", "full", "embedded", "leakage", "coupling", 3),
  run("wasm", "full", "embedded", "alignment", "control", 4),
  run("wasm", "full", "embedded", "letters", "foreign", 5),
  run("wasm", "full", "talkative", "letters", "control", 6),
  run("wasm", "full", "llama", "letters", "coupling", 7),
  run("wasm", "full", "gpt2", "cloze", "coupling", 8),
  run("wasm", "full", "saved-llama", "letters", "coupling", 9),
  run("cpu", "full", "saved-gpt2", "letters", "control", 10),
  run("cpu", "full", "embedded", "letters", "coupling", 11),
  run("cpu", "full", "qwen3", "letters", "em", 12),
  run("wasm", "lora", "embedded", "letters", "coupling", 13),
  run("wasm", "lora", "embedded", "kl", "control", 14),
  run("wasm", "lora", "embedded", "alignment", "control", 15),
  run("wasm", "lora", "gemma2", "cloze", "coupling", 16),
  run("cpu", "lora", "embedded", "cloze", "em", 17),
  run("wasm", "dpo", "embedded", "letters", "control", 18),
  run("wasm", "dpo-lora", "embedded", "leakage", "control", 19),
  run("cpu", "model.fit", "bigram", "letters", "coupling", 20),
  run("cpu", "model.fit", "bigram", "cloze", "foreign", 21),
  run("wasm", "hand-written", "embedded", "letters", "coupling", 22),
  run("wasm", "yaml", "embedded", "letters", "coupling", 23),
  run("wasm", "yaml", "talkative", "letters", "em", 24),
  run("wasm", "watch-full", "embedded", "letters", "none", 25),
  run("wasm", "watch-adapters", "embedded", "letters", "none", 26),
  run("native", "full", "embedded", "letters", "coupling", 27),
  run("wasm", "measure", "embedded", "alignment", "none", 28),
  run("server", "measure", "embedded", "letters", "none", 29),
  run("transformers.js", "measure", "embedded", "letters", "none", 30),
];
