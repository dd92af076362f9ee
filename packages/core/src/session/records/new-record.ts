import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import { hashJson } from "../../random/hash.ts";
import type { Progress } from "../../contracts/schedule.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import type { Prepared } from "../window/preflight.ts";
import type { Run } from "../run.ts";
import { version } from "../loop/version.ts";

/** What is known of a firing before anything is measured. */
export interface Firing {
  readonly id: string;
  readonly phase: string;
  readonly at: Progress;
  readonly runStepOffset: number;
  /** The thresholds as text. */
  readonly crossed: readonly string[];
  readonly on: "model" | "base";
  readonly evaluation: Pick<AnyEvaluation, "name" | "version">;
  readonly seed: string;
  readonly createdAt: string;
}

/** A firing at the step where the run stands. */
export function firingOf(
  { phase, progress: at, runStepOffset, seed, now }: Run,
  asked: Pick<Firing, "id" | "crossed" | "on" | "evaluation">,
): Firing {
  return { ...asked, phase, at, runStepOffset, seed, createdAt: now() };
}

/** A record in which nothing is measured yet; the caller says what became of it. */
export function recordOf(
  firing: Firing,
  changes: Partial<Snapshot> & Pick<Snapshot, "status" | "reason">,
): Snapshot {
  const { at, evaluation, seed } = firing;
  return {
    schema_version: 1,
    evaluation: evaluation.name,
    evaluation_version: evaluation.version,
    id: firing.id,
    phase: firing.phase,
    step: at.step,
    run_step: firing.runStepOffset + at.step,
    max_steps: at.maxSteps,
    pct: percentOf(at),
    epoch: at.epoch,
    crossed: [...firing.crossed],
    created_at: firing.createdAt,
    on: firing.on,
    metrics: {},
    primary_metric: null,
    paired: { baseline: null, previous: null },
    timing: {
      total_seconds: 0,
      guards_seconds: 0,
      measure_seconds: 0,
      grade_seconds: null,
      items: 0,
      tokens: null,
      overhead_percent: null,
      governor: "off",
    },
    receipt: [],
    provenance: unknownProvenance(seed),
    weights: null,
    samples: null,
    ...changes,
  };
}

const created_by = `@periodic-eval/core ${version}`;

/** Percent of the phase; null where its length is not known, or 0. */
export function percentOf({ step, maxSteps }: Pick<Progress, "step" | "maxSteps">): number | null {
  return maxSteps === null || maxSteps === 0 ? null : (100 * step) / maxSteps;
}

/** Of a firing for which nothing could be prepared. */
export function unknownProvenance(seed: string): Snapshot["provenance"] {
  const unknown = {
    hash: null,
    items_hash: null,
    items: null,
    evaluation: null,
    model: null,
    tokenizer: null,
  };
  return { ...unknown, seed, created_by };
}

/**
 * Everything needed to repeat a measurement but the weights, whose fingerprint stands beside it: so the hash is the
 * same at every step of a phase, and of two phases measured alike.
 */
export function provenanceOf(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  seed: string,
): Snapshot["provenance"] {
  const { identity, contextLength, tokenizer } = prepared.target;
  const { weights: _, ...model } = identity;
  const facts = {
    items_hash: prepared.itemsHash,
    items: prepared.items.length,
    evaluation: evaluation.provenance?.() ?? null,
    model: { ...model, context_length: contextLength } as Json,
    tokenizer: tokenizer?.fingerprint ?? null,
    seed,
  };
  const { name, version: evaluationVersion } = evaluation;
  const hash = hashJson({ ...facts, name, version: evaluationVersion });
  return { hash, ...facts, created_by };
}
