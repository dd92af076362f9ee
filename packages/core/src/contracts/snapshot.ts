import { z } from "zod";
import type { Row } from "./row.ts";
import type { Json } from "./json.ts";

const json: z.ZodType<Json> = z.json();

/** The pattern of phase names and callback ids, which become file names. */
export const namePattern = /^[A-Za-z0-9][\w.-]*$/;

export const nameSchema = z.string().regex(namePattern);

export const metricValueSchema = z.object({
  /** Null if nothing could be observed; 0 is always a measured 0. */
  value: z.number().nullable(),
  /** Number of observed rows. */
  n: z.int().nonnegative(),
  stderr: z.number().nullable(),
  ci95: z.tuple([z.number(), z.number()]).nullable(),
  /**
   * The questions that the interval is about. `given_questions`: these questions, with the noise of answering them. `over_questions`:
   * the population of questions that these are drawn from.
   */
  estimand: z.enum(["given_questions", "over_questions"]),
  unit: z.string(),
  higher_is_better: z.boolean().nullable(),
  /** The smallest and the largest possible value, null where there is no bound; absent if neither is known. */
  range: z.tuple([z.number().nullable(), z.number().nullable()]).optional(),
});

export const evidenceSchema = z.object({
  /** The guard's name; after a slash, the part that it observed. */
  part: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  /** True: observed unchanged. False: changed. Null: not observed. */
  intact: z.boolean().nullable(),
  /** True if a change does not count as a disturbance of the training (a leaked tensor). */
  advisory: z.boolean().optional(),
  note: z.string().optional(),
});

export const pairedSchema = z.object({
  /** Phase and step of the other snapshot. */
  phase: z.string(),
  step: z.int().nonnegative(),
  /** Its id, if it differs from this snapshot's (the measurement without the adapter). */
  id: nameSchema.optional(),
  /** Its run, if it is another run: the path given as session option `baseline`. */
  run: z.string().optional(),
  /** Items that both measurements observed. */
  n_pairs: z.int().nonnegative(),
  /** This measurement minus the other one. */
  delta: z.number().nullable(),
  ci95: z.tuple([z.number(), z.number()]).nullable(),
  test: z.enum(["mcnemar_exact", "permutation", "paired_t"]).nullable(),
  p_value: z.number().nullable(),
  /** Significance level that this comparison may spend; null for exploratory comparisons. */
  alpha: z.number().nullable(),
  /** Smallest change that such a comparison detects with power 0.8; null if it detects no possible change that often. */
  minimal_detectable_change: z.number().nullable(),
  verdict: z.enum(["better", "worse", "changed", "no evidence"]).nullable(),
  exploratory: z.boolean(),
});

export const statusSchema = z.enum(["grading", "complete", "partial", "skipped", "failed"]);

/** A snapshot file. Evaluations add plain keys at the top level (`accuracy`, `correct`, …); unknown keys are kept. */
export const snapshotSchema = z
  .object({
    schema_version: z.literal(1),
    evaluation: z.string(),
    evaluation_version: z.string(),
    id: nameSchema,
    phase: nameSchema,
    step: z.int().nonnegative(),
    /** `step` plus the steps of the run's earlier phases. */
    run_step: z.int().nonnegative(),
    max_steps: z.int().nonnegative().nullable(),
    /** 100 × step / max_steps; null if max_steps is unknown. */
    pct: z.number().nullable(),
    epoch: z.number(),
    /** Descriptions of the thresholds that this measurement crossed: `every 20 percent: 40`, `start`, `end`. */
    crossed: z.array(z.string()),
    status: statusSchema,
    /** Why the measurement is partial, skipped or failed; else null. */
    reason: z.string().nullable(),
    /** ISO 8601 time. */
    created_at: z.string(),
    /** Whether the model or its base (without the adapter) was measured. */
    on: z.enum(["model", "base"]),
    metrics: z.record(z.string(), metricValueSchema),
    primary_metric: z.string().nullable(),
    paired: z.object({
      baseline: z.record(z.string(), pairedSchema).nullable(),
      previous: z.record(z.string(), pairedSchema).nullable(),
    }),
    timing: z.object({
      /**
       * Seconds that training was paused for this measurement, including guards and excluding grading; 0 if nothing was
       * measured. The time to write the snapshot counts in the next measurement's `overhead_percent`.
       */
      total_seconds: z.number(),
      guards_seconds: z.number(),
      measure_seconds: z.number(),
      grade_seconds: z.number().nullable(),
      items: z.int().nonnegative(),
      /** Tokens that the model read and generated, without padding; null if its engine reports none or nothing was measured. */
      tokens: z.int().nonnegative().nullable(),
      /** Overhead of the phase so far: Σ window seconds / (wall seconds − Σ window seconds), in percent. */
      overhead_percent: z.number().nullable(),
      /** The overhead governor's decision and its reason; `off` if there is no ceiling. */
      governor: z.string(),
    }),
    receipt: z.array(evidenceSchema),
    provenance: z.object({
      /**
       * `hashJson` (`pe128:…`) of the evaluation's name and version and of all following fields except `created_by`. Null, as
       * is `items_hash`, if nothing was prepared: the measurement was skipped or its items could not be read.
       */
      hash: z.string().nullable(),
      items_hash: z.string().nullable(),
      items: z.int().nonnegative().nullable(),
      evaluation: json,
      /** The model's identity and context length, without the weights' fingerprint, which is in `weights`. */
      model: json,
      tokenizer: z.string().nullable(),
      seed: z.string(),
      created_by: z.string(),
    }),
    /** Fingerprint of the measured weights; null if no guard reports one. */
    weights: z.string().nullable(),
    /** Where the session's `saveAtFiring` saved the measured weights, or the error it threw; absent if nothing was saved. */
    saved: z.object({ path: z.string().nullable(), error: z.string().nullable() }).optional(),
    /** The file of the rows, in the same folder, which the store sets; null if there are no rows. */
    samples: z.object({ file: z.string(), rows: z.int().nonnegative() }).nullable(),
  })
  .catchall(json);

export type MetricValue = z.infer<typeof metricValueSchema>;
export type Evidence = z.infer<typeof evidenceSchema>;
export type Paired = z.infer<typeof pairedSchema>;
export type SnapshotStatus = z.infer<typeof statusSchema>;
/** The JSON record of one measurement. Published as a JSON Schema (`@periodic-eval/core/schema.json`). */
export type Snapshot = Pick<z.infer<typeof snapshotSchema>, KnownKey> & { [plainKey: string]: unknown };
type KnownKey = keyof (typeof snapshotSchema)["shape"];

/** Identifies a snapshot within a run. */
export interface SnapshotKey {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
}

/** Stores the snapshots of a run. Every write is atomic: a reader sees the old snapshot or the new one, never a part. */
export interface SnapshotStore {
  /**
   * Locks the store for writing and repairs what a crash left behind. The first write does the same if `open` was not called.
   * Reading needs no lock.
   *
   * @throws PeriodicEvalError `store` if another session writes here; it names that session's process.
   */
  open?(): Promise<void>;
  /** Writes the rows, then the snapshot, then its index line. Replaces a snapshot with the same key. */
  put(snapshot: Snapshot, rows: readonly Row[]): Promise<void>;
  /** Returns the snapshot, or null if the store has none with this key. */
  get(key: SnapshotKey): Promise<Snapshot | null>;
  /** Returns the snapshot's rows; empty if it has none. */
  rows(key: SnapshotKey): Promise<readonly Row[]>;
  /** Returns all snapshots, ordered by phase (as they were run), step and id. */
  list(): Promise<readonly Snapshot[]>;
  /** Moves a snapshot and its rows to `superseded/`. Nothing is deleted. */
  supersede(key: SnapshotKey, why: string): Promise<void>;
  /** Releases the lock after pending writes. May be called twice; a later write opens the store again. */
  close?(): Promise<void>;
}

/** `nested`: one folder per phase. `flat`: all snapshots directly in `periodic_eval/`. */
export type Layout = "nested" | "flat";
