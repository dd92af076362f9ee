import type { ForwardLimits } from "../batching/batches.ts";

/** A sequence, and the tokens to score at its last positions. */
export interface ScoredSequence {
  readonly ids: readonly number[];
  /** Token ids to score per scored position. The last scored position is the last token of the sequence. */
  readonly picks: readonly (readonly number[])[];
}

/** Returns the first scored position. */
export const firstScored = ({ ids, picks }: ScoredSequence): number => ids.length - picks.length;

/** The scores of one sequence. */
export interface Scores {
  /** log p of the picks of all positions, in nats, in order. */
  readonly nats: readonly number[];
  /** Whether each pick is a most likely token. */
  readonly isTop: readonly boolean[];
  /** Entropy per scored position, in nats; empty if not requested. */
  readonly entropyNats: readonly number[];
}

export interface ScoreOptions {
  readonly signal: AbortSignal;
  readonly limits: ForwardLimits;
  readonly withEntropy: boolean;
}

export interface AllScores {
  /** One per sequence, in their order. */
  readonly scores: readonly Scores[];
  /** Tokens that the model read, without padding. */
  readonly tokens: number;
}
