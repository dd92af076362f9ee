import type { Awaitable, EvaluableModel } from "@periodic-eval/core";

/** A trainer whose live weights can be measured, as those of `@periodic-eval/trainers` are. */
export interface EvaluableTrainer {
  /** Each call sees the weights as they then are. */
  readonly evaluableModel: EvaluableModel;
  /** Hash of everything in the model that changes a number, as it now is; null where it cannot be told. */
  modelFingerprint(): Awaitable<string | null>;
}

/** What is to be opened. */
export interface CheckpointSource {
  /** A folder, or `owner/name` on the hub. */
  readonly folder: string;
  /** Likewise; null for none. */
  readonly adapter: string | null;
  /** Likewise; null for the one of the checkpoint. */
  readonly tokenizer: string | null;
}

export interface OpenedModel {
  readonly model: EvaluableModel;
  /**
   * Hash of all weights, the adapter's with them. Left out or null: what was measured before cannot be told to be of the
   * same weights, and is not gone on from.
   */
  fingerprint?(): Awaitable<string | null>;
  /** Hash of the weights without the adapter, as checkpoints of our trainers name it (`frozenWeights`). */
  baseFingerprint?(): Awaitable<string | null>;
  dispose?(): void;
}

/** Loads a checkpoint: `tasks` knows no engine. */
export type OpenModel = (source: CheckpointSource) => Promise<OpenedModel>;
