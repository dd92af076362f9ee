import type { ForwardLimits } from "./batches.ts";

/** A sequence, and what is wanted of the distributions at its last positions. */
export interface ScoredSequence {
  readonly ids: readonly number[];
  /** One entry per scored position, the last of which is the sequence's last token. */
  readonly picks: readonly (readonly number[])[];
}

/** The first position whose logits are wanted. */
export const firstScored = ({ ids, picks }: ScoredSequence): number => ids.length - picks.length;

export interface Scores {
  /** Picks of all positions, in order. */
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  /** One per scored position; empty where not asked for. */
  readonly entropyNats: readonly number[];
}

export interface ScoreOptions {
  readonly signal: AbortSignal;
  readonly limits: ForwardLimits;
  readonly withEntropy: boolean;
}

export interface AllScores {
  /** In the order of the sequences, whatever the batches. */
  readonly scores: readonly Scores[];
  /** Read by the model, padding left out. */
  readonly tokens: number;
}
