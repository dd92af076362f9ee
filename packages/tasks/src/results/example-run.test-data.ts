import type { MetricsRun } from "./metrics-file.ts";

export const exampleRun: MetricsRun = {
  name: "sft",
  method: "sft",
  model: "org/tiny",
  adapter: null,
  config_hash: "pe128:suite",
  config_path: "suite.yaml",
  model_args: "pretrained=org/tiny",
  timestamp: "2026-01-02T03:04:05.000Z",
  metrics: { "mmlu/acc,none": 0.25, "mmlu_stem/acc,none": null },
  stderr: { "mmlu/acc,none": 0.01, "mmlu_stem/acc,none": null },
  n: { "mmlu/acc,none": 1000, "mmlu_stem/acc,none": 0 },
  ci95: { "mmlu/acc,none": [0.23, 0.27], "mmlu_stem/acc,none": null },
  higher_is_better: { "mmlu/acc,none": true, "mmlu_stem/acc,none": true },
  run_hash: "pe128:run",
  documents: { "gsm8k 3.0": "pe128:documents" },
  suite: { tasks: { mmlu: { shots: 5, limit: 1000 } } },
  extras: {},
};
