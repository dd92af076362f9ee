import { z } from "zod";
import type { Row } from "./row.ts";
import type { Json } from "./json.ts";

const json: z.ZodType<Json> = z.json();

/** Names of phases and callback ids: they become file names. */
export const namePattern = /^[A-Za-z0-9][\w.-]*$/;

export const nameSchema = z.string().regex(namePattern);

export const metricValueSchema = z.object({
  /** Null where nothing could be observed; never 0 in its place. */
  value: z.number().nullable(),
  /** Observed rows. */
  n: z.int().nonnegative(),
  stderr: z.number().nullable(),
  ci95: z.tuple([z.number(), z.number()]).nullable(),
  /** `given_questions`: these questions, noise of answering. `over_questions`: questions like these. */
  estimand: z.enum(["given_questions", "over_questions"]),
  unit: z.string(),
  higher_is_better: z.boolean().nullable(),
  /** The least and the most that the value can be, null where there is no bound; left out where neither is known. */
  range: z.tuple([z.number().nullable(), z.number().nullable()]).optional(),
});

export const evidenceSchema = z.object({
  /** The guard's name, and after a slash what it watched. */
  part: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  /** True: seen unchanged. False: disturbed. Null: not observed. */
  intact: z.boolean().nullable(),
  /** Set where a disturbance does not count against the training (a leaked tensor, say). */
  advisory: z.boolean().optional(),
  note: z.string().optional(),
});

export const pairedSchema = z.object({
  /** Step and phase of the snapshot compared with. */
  phase: z.string(),
  step: z.int().nonnegative(),
  /** Its id, where it is not this snapshot's: that of the measurement without the adapter. */
  id: nameSchema.optional(),
  /** Its run, as the session option `baseline` names it, where it is not this one. */
  run: z.string().optional(),
  n_pairs: z.int().nonnegative(),
  /** This minus that. */
  delta: z.number().nullable(),
  ci95: z.tuple([z.number(), z.number()]).nullable(),
  test: z.enum(["mcnemar_exact", "permutation", "paired_t"]).nullable(),
  p_value: z.number().nullable(),
  /** What this look may spend; null for exploratory comparisons. */
  alpha: z.number().nullable(),
  /** Smallest change that such a look would see four times in five; null where it would see none that is possible so. */
  minimal_detectable_change: z.number().nullable(),
  verdict: z.enum(["better", "worse", "changed", "no evidence"]).nullable(),
  exploratory: z.boolean(),
});

export const statusSchema = z.enum(["grading", "complete", "partial", "skipped", "failed"]);

/** Snapshots carry further plain keys at the top level (`accuracy`, `correct`, …); unknown keys are kept. */
export const snapshotSchema = z
  .object({
    schema_version: z.literal(1),
    evaluation: z.string(),
    evaluation_version: z.string(),
    id: nameSchema,
    phase: nameSchema,
    step: z.int().nonnegative(),
    /** Steps of earlier phases of the run added. */
    run_step: z.int().nonnegative(),
    max_steps: z.int().nonnegative().nullable(),
    /** 100 × step / max_steps; null where max_steps is not known. */
    pct: z.number().nullable(),
    epoch: z.number(),
    /** The thresholds this firing stands for, as text: `every 20 percent: 40`, `start`, `end`. */
    crossed: z.array(z.string()),
    status: statusSchema,
    /** Why it is partial, skipped or failed. */
    reason: z.string().nullable(),
    created_at: z.string(),
    on: z.enum(["model", "base"]),
    metrics: z.record(z.string(), metricValueSchema),
    primary_metric: z.string().nullable(),
    paired: z.object({
      baseline: z.record(z.string(), pairedSchema).nullable(),
      previous: z.record(z.string(), pairedSchema).nullable(),
    }),
    timing: z.object({
      /** Seconds training stood still for this measurement, guards included, grading not; its writing counts in `overhead_percent` of the next. 0 where nothing was measured. */
      total_seconds: z.number(),
      guards_seconds: z.number(),
      measure_seconds: z.number(),
      grade_seconds: z.number().nullable(),
      items: z.int().nonnegative(),
      /** That the model read and drew, padding left out; null where its engine does not tell, or nothing was measured. */
      tokens: z.int().nonnegative().nullable(),
      /** The phase so far: Σ window seconds / (wall − Σ window seconds), in percent. */
      overhead_percent: z.number().nullable(),
      /** What the governor of overhead decided, and why; `off` where there is none. */
      governor: z.string(),
    }),
    receipt: z.array(evidenceSchema),
    provenance: z.object({
      /**
       * `hashJson` (`pe128:…`) of the evaluation's name and version and of all the following but `created_by`. Like
       * the items', null where nothing was prepared: a skipped firing, items that could not be read.
       */
      hash: z.string().nullable(),
      items_hash: z.string().nullable(),
      items: z.int().nonnegative().nullable(),
      evaluation: json,
      /** Identity and context length; the weights' fingerprint stands in `weights`. */
      model: json,
      tokenizer: z.string().nullable(),
      seed: z.string(),
      created_by: z.string(),
    }),
    /** Fingerprint of the weights measured; null where no guard gives one. */
    weights: z.string().nullable(),
    /** Where the session's `saveAtFiring` put the weights measured, or what it threw; left out where nothing was saved. */
    saved: z.object({ path: z.string().nullable(), error: z.string().nullable() }).optional(),
    /** Set by the store: the rows' file beside this one; null where there are no rows. */
    samples: z.object({ file: z.string(), rows: z.int().nonnegative() }).nullable(),
  })
  .catchall(json);

export type MetricValue = z.infer<typeof metricValueSchema>;
export type Evidence = z.infer<typeof evidenceSchema>;
export type Paired = z.infer<typeof pairedSchema>;
export type SnapshotStatus = z.infer<typeof statusSchema>;
/** The record of one firing. */
export type Snapshot = Pick<z.infer<typeof snapshotSchema>, KnownKey> & { [plainKey: string]: unknown };
type KnownKey = keyof (typeof snapshotSchema)["shape"];

export interface SnapshotKey {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
}

/** Where snapshots live. Every write is whole: a reader sees the old record or the new one, never a torn one. */
export interface SnapshotStore {
  /**
   * Takes sole ownership for writing and mends what a crash left; the first write does it where nobody did. Throws a
   * `store` error that names the holder's process where another session writes here. Reading needs no ownership.
   */
  open?(): Promise<void>;
  /** Writes the rows, then the snapshot, then a line of the index; replaces a snapshot of the same key. */
  put(snapshot: Snapshot, rows: readonly Row[]): Promise<void>;
  get(key: SnapshotKey): Promise<Snapshot | null>;
  rows(key: SnapshotKey): Promise<readonly Row[]>;
  /** Every snapshot, by phase in order of appearance, then step, then id. */
  list(): Promise<readonly Snapshot[]>;
  /** Sets a snapshot and its rows aside into `superseded/`; it is never deleted. */
  supersede(key: SnapshotKey, why: string): Promise<void>;
  /** Gives ownership back once pending writes are done. May be called twice; a later write opens again. */
  close?(): Promise<void>;
}

/** `nested`: a folder per phase. `flat`: all snapshots directly in `periodic_eval/`. */
export type Layout = "nested" | "flat";
