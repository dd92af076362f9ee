import type { appendRun } from "@periodic-eval/tasks";

/** A run with one score, for a `metrics.json`. */
export const oneResult: Parameters<typeof appendRun>[1] = {
  name: "base",
  method: null,
  model: "tiny",
  adapter: null,
  config_hash: "pe128:0",
  config_path: null,
  model_args: {},
  timestamp: "2026-01-01T00:00:00.000Z",
  metrics: { "arc/acc,none": 0.5 },
  extras: {},
};
