import {
  type MeasureRequest,
  type TrainerCallback,
  type AnyEvaluation,
  type MeasurementWarning,
  type Progress,
  evidenceSchema,
  type Snapshot,
} from "@periodic-eval/contracts";

export interface Requested extends MeasureRequest {
  readonly callback: TrainerCallback;
}

/** Where in a run something is measured. */
export interface Position {
  readonly phase: string;
  readonly seed: string;
  readonly progress: Progress;
  /** Steps of the whole run. */
  readonly runStep: number;
  /** Returns the current time, ISO 8601. */
  readonly now: () => string;
  /** Folder of the checkpoint that the weights were read from; null if they are those of a training in this process. */
  readonly checkpoint: string | null;
}

/** Everything known about a measurement before it is taken. */
export interface Measurement {
  readonly id: string;
  readonly phase: string;
  readonly at: Progress;
  readonly runStep: number;
  /** The thresholds, as their descriptions. */
  readonly crossed: readonly string[];
  readonly on: "model" | "base";
  readonly evaluation: Pick<AnyEvaluation, "name" | "version" | "answers">;
  readonly seed: string;
  readonly createdAt: string;
}

export function measurementAt(
  { phase, progress: at, runStep, seed, now }: Position,
  { id, crossed, on, evaluation }: Pick<Measurement, "id" | "crossed" | "on" | "evaluation">,
): Measurement {
  return { id, crossed, on, evaluation, phase, at, runStep, seed, createdAt: now() };
}

/** Returns a snapshot without numbers, overridden by `changes`. */
export function newSnapshot(
  { id, phase, at, runStep, crossed, on, evaluation, seed, createdAt }: Measurement,
  changes: Partial<Snapshot> & Pick<Snapshot, "status" | "reason">,
): Snapshot {
  return {
    schema_version: 1,
    evaluation: evaluation.name,
    evaluation_version: evaluation.version,
    id,
    phase,
    step: at.step,
    run_step: runStep,
    max_steps: at.maxSteps,
    pct: percentOf(at),
    epoch: at.epoch,
    crossed: [...crossed],
    created_at: createdAt,
    on,
    metrics: {},
    primary_metric: null,
    paired: { baseline: null, previous: null },
    warnings: [],
    timing: { ...noTiming },
    receipt: [],
    provenance: unknownProvenance(seed),
    weights: null,
    ...(evaluation.answers !== undefined && { answer_fields: evaluation.answers }),
    samples: null,
    ...changes,
  };
}

/** Returns a warning about every metric of a measurement. */
export const warningOfAll = (
  kind: MeasurementWarning["kind"],
  message: string,
  isVoid = true,
): MeasurementWarning => ({
  kind,
  metrics: null,
  count: null,
  total: null,
  void: isVoid,
  message,
});

export const noTiming: Snapshot["timing"] = {
  total_seconds: 0,
  guards_seconds: 0,
  measure_seconds: 0,
  grade_seconds: null,
  items: 0,
  tokens: null,
  overhead_percent: null,
  governor: "off",
};

/** The package's version for provenance; a test compares it with package.json. */
export const version = "0.1.0";

export const createdBy = `@periodic-eval/core ${version}`;

/** Returns the percent of the phase; null if its length is unknown or 0. */
export function percentOf({ step, maxSteps }: Pick<Progress, "step" | "maxSteps">): number | null {
  return maxSteps === null || maxSteps === 0 ? null : (100 * step) / maxSteps;
}

function unknownProvenance(seed: string): Snapshot["provenance"] {
  return {
    hash: null,
    items_hash: null,
    items: null,
    evaluation: null,
    model: null,
    tokenizer: null,
    seed,
    created_by: createdBy,
  };
}

/** Returns a `failed` snapshot in place of an invalid one: without what the evaluation and the guards made. */
export function fallbackSnapshot(snapshot: Snapshot, reason: string): Snapshot {
  const { id, phase, step, crossed, on, timing, served } = snapshot;
  const measurement = {
    id,
    phase,
    crossed,
    on,
    runStep: snapshot.run_step,
    createdAt: snapshot.created_at,
    at: { step, maxSteps: snapshot.max_steps, epoch: snapshot.epoch, elapsedSeconds: 0, ended: false },
    evaluation: { name: snapshot.evaluation, version: snapshot.evaluation_version },
    seed: snapshot.provenance.seed,
  };
  const weights = typeof snapshot.weights === "string" ? snapshot.weights : null;
  const receipt = snapshot.receipt.filter((evidence) => evidenceSchema.safeParse(evidence).success);
  const changes = { status: "failed", reason, timing, weights, receipt } as const;
  return newSnapshot(measurement, { ...changes, ...(served !== undefined && { served }) });
}
