import type { Snapshot } from "@periodic-eval/contracts";

/** Returns a valid snapshot with changes: `exampleSnapshot({ step: 20, status: "failed" })`. `pct` follows from the steps. */
export function exampleSnapshot(changes: Partial<Snapshot> = {}): Snapshot {
  const step = changes.step ?? 0;
  const maxSteps = changes.max_steps === undefined ? 100 : changes.max_steps;
  const example: Snapshot = {
    schema_version: 1,
    evaluation: "capability",
    evaluation_version: "1",
    id: "capability",
    phase: "train",
    step,
    run_step: step,
    max_steps: maxSteps,
    pct: maxSteps === null || maxSteps === 0 ? null : (100 * step) / maxSteps,
    epoch: 0,
    crossed: step === 0 ? ["start"] : [],
    status: "complete",
    reason: null,
    created_at: "2026-01-01T00:00:00.000Z",
    on: "model",
    metrics: {
      accuracy: {
        value: 0.5,
        n: 4,
        stderr: 0.25,
        ci95: [0.15, 0.85],
        estimand: "given_questions",
        unit: "share",
        higher_is_better: true,
        range: [0, 1],
      },
    },
    primary_metric: "accuracy",
    paired: { baseline: null, previous: null },
    warnings: [],
    timing: {
      total_seconds: 1,
      guards_seconds: 0.1,
      measure_seconds: 0.8,
      grade_seconds: null,
      items: 4,
      tokens: 120,
      overhead_percent: 5,
      governor: "off",
    },
    receipt: [{ part: "weights", before: "a1", after: "a1", intact: true }],
    provenance: {
      hash: "00",
      items_hash: "00",
      items: 4,
      evaluation: null,
      model: { name: "fake" },
      tokenizer: null,
      seed: "42",
      created_by: "periodic-eval tests",
    },
    weights: "a1",
    samples: null,
  };
  return Object.assign(example, changes);
}
