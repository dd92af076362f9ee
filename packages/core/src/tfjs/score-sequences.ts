import type { ForwardLimits } from "./batches.ts";
import type { CausalLM, Incremental } from "./causal-lm.ts";
import { refuseNaN } from "./device-scores.ts";
import { incrementalOf } from "./forward.ts";
import { scorePacked } from "./score-packed.ts";
import { scorePlain } from "./score-plain.ts";
import type { AllScores, ScoredSequence, ScoreOptions } from "./scored-sequence.ts";

/**
 * Scores of sequences, with one download a batch: packed where the model reads incrementally, else one row a sequence.
 *
 * @throws PeriodicEvalError `model` for logits that are not numbers, or no memory for one row; `aborted`.
 */
export async function scoreSequences(
  lm: CausalLM,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const incremental = packingOf(lm, options.limits);
  const all =
    incremental === null
      ? await scorePlain(lm, sequences, options)
      : await scoreWithin(lm, incremental, sequences, options);
  for (const { nats } of all.scores) refuseNaN(nats);
  return all;
}

/** Packed as far as the model's incremental reading reaches, and whole beyond. */
async function scoreWithin(
  lm: CausalLM,
  incremental: Incremental,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const isWithin = sequences.map(({ ids }) => ids.length <= incremental.reach);
  const within = sequences.filter((_, index) => isWithin[index]);
  const packed = await scorePacked(lm, incremental, within, options);
  if (within.length === sequences.length) return packed;
  const beyond = sequences.filter((_, index) => !isWithin[index]);
  const plain = await scorePlain(lm, beyond, options);
  const [ofPacked, ofPlain] = [packed.scores.values(), plain.scores.values()];
  return {
    scores: isWithin.map((is) => (is ? ofPacked : ofPlain).next().value!),
    tokens: packed.tokens + plain.tokens,
  };
}

/** What sequences are packed by; null where they are scored one by one. */
export const packingOf = (lm: CausalLM, { scoring }: ForwardLimits): Incremental | null =>
  scoring === "packed" ? incrementalOf(lm) : null;
