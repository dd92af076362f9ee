import type { Evidence, MetricValue, Paired, Snapshot } from "@periodic-eval/core";
import { mathRandomGuard } from "@periodic-eval/core/session";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { tfjsGuards, type CausalLM } from "@periodic-eval/tfjs";

/** Correct answers out of 100 at 0, 20, 40, 60, 80 and 100 %: the first phase stays level, the second forgets. */
const correct = { coupling: [93, 92, 94, 91, 92, 90], em: [90, 84, 79, 71, 66, 63] } as const;
const phaseSteps = 60;

const lm: CausalLM = {
  vocabSize: 2,
  contextLength: 1,
  logits: () => {
    throw new Error("the sample model cannot be measured");
  },
  enterEval: () => () => undefined,
};
/** Names of the guards that our trainers install, in the order of a receipt. */
const guards: readonly string[] = [mathRandomGuard(), ...tfjsGuards(lm, { slots: () => [] })].map(
  ({ name }) => name,
);

/** Writes twelve snapshots of two phases, like those of the demo. */
export async function writeSampleRun(
  runDir: string,
  change: (snapshot: Snapshot) => Snapshot = (snapshot) => snapshot,
): Promise<void> {
  const store = fileStore(runDir);
  for (const snapshot of sampleSnapshots()) await store.put(change(snapshot), []);
  await store.close?.();
}

export function sampleSnapshots(): readonly Snapshot[] {
  return (["coupling", "em"] as const).flatMap((phase, phaseIndex) =>
    correct[phase].map((hits, measurement) =>
      snapshotOf(phase, phaseIndex, measurement, hits, correct[phase][0]),
    ),
  );
}

function snapshotOf(
  phase: string,
  phaseIndex: number,
  measurement: number,
  hits: number,
  hitsAtStart: number,
): Snapshot {
  const step = (measurement * phaseSteps) / 5;
  const drop = (hits - hitsAtStart) / 100;
  const p = measurement === 0 ? null : Math.exp(-40 * Math.abs(drop));
  const paired = (delta: number, isPrimary: boolean): Paired => ({
    phase,
    step: 0,
    n_pairs: 100,
    delta,
    ci95: [delta - 0.07, delta + 0.06],
    test: isPrimary ? "mcnemar_exact" : "paired_t",
    p_value: p,
    alpha: isPrimary ? 0.01 : null,
    minimal_detectable_change: 0.117,
    verdict: p !== null && p < 0.01 ? (delta < 0 ? "worse" : "better") : "no evidence",
    exploratory: !isPrimary,
  });
  const share = hits / 100;
  const fingerprint = (digit: string) =>
    `pe128:${digit}${measurement}${phaseIndex}`.padEnd(38, "0123456789abcdef");
  const weights = fingerprint("a");
  return exampleSnapshot({
    evaluation_version: "letters-1",
    phase,
    step,
    run_step: phaseIndex * phaseSteps + step,
    max_steps: phaseSteps,
    epoch: step / 30,
    crossed: measurement === 0 ? ["start"] : [`every 20 percent: ${20 * measurement}`],
    created_at: `2026-03-01T10:${String(10 + 6 * phaseIndex + measurement).padStart(2, "0")}:00.000Z`,
    metrics: {
      accuracy: metric(share, 0.05, "share"),
      gold_log_prob: metric(-0.35 - 2.4 * (1 - share), 0.16, "nats"),
      gold_margin: metric(4 * share - 1.1, 0.3, "nats"),
      gold_prob: metric(share - 0.06, 0.045, "probability"),
    },
    paired: {
      baseline:
        measurement === 0 ? null : { accuracy: paired(drop, true), gold_log_prob: paired(2.4 * drop, false) },
      previous: null,
    },
    timing: {
      ...exampleSnapshot().timing,
      total_seconds: 0.82 + 0.01 * measurement,
      guards_seconds: 0.05,
      measure_seconds: 0.74,
      items: 100,
      overhead_percent: 18.4,
    },
    receipt: guards.map((part) => evidenceOf(part, weights, `${fingerprint("b")} slots=58 steps=${step}`)),
    provenance: {
      hash: `pe128:${"4c1f".repeat(8)}`,
      items_hash: `pe128:${"99ab".repeat(8)}`,
      items: 100,
      evaluation: { method: "letters", system: "omit", example_prompt: "<|user|>Where does the heron live?" },
      model: { name: "micro-world", engine: "tfjs-wasm", dtype: "float32", weights: null, adapter: null },
      tokenizer: "77fe".repeat(16),
      seed: "42",
      created_by: "@periodic-eval/core 0.1.0, node 20.19.0",
    },
    weights,
    accuracy: share,
    correct: hits,
    total: 100,
  });
}

/** Returns the evidence that a guard of our trainers records. */
function evidenceOf(part: string, weights: string, optimizer: string): Evidence {
  const same = (text: string, more: Partial<Evidence> = {}): Evidence => ({
    part,
    before: text,
    after: text,
    intact: true,
    ...more,
  });
  const evidence: Readonly<Record<string, Evidence>> = {
    "math-random": same("training's own", { note: "no draws" }),
    tensors: same("118 tensors", { advisory: true }),
    variables: same("87 variables"),
    mode: same("decoder: training, dropout 0.1"),
    weights: same(weights),
    optimizer: same(optimizer),
    "evaluation-mode": { part, before: "entered", after: "restored", intact: true },
  };
  const found = evidence[part];
  if (found === undefined) throw new Error(`the sample has no evidence for the guard ${part}`);
  return found;
}

function metric(value: number, margin: number, unit: string): MetricValue {
  return {
    value,
    n: 100,
    stderr: margin / 1.96,
    ci95: [value - margin, unit === "share" ? Math.min(1, value + margin) : value + margin],
    estimand: unit === "share" ? "given_questions" : "over_questions",
    unit,
    higher_is_better: true,
  };
}
