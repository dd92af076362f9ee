import * as tf from "@tensorflow/tfjs-core";
import type { ForwardLimits } from "./batches.ts";
import type { CausalLM, Incremental } from "./causal-lm.ts";
import { refuseNaN } from "./device-scores.ts";
import { incrementalOf } from "./forward.ts";
import { packByPrefix } from "./packing.ts";
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

/**
 * The share of the tokens that packing may still read: a mask for each row and pieces that are joined cost something of
 * their own. With a system prompt as all that is shared, 200 letters questions of the embedded model took 1.0 s packed and
 * 0.6 plain on wasm; by cloze 0.4 and 0.75. Native TensorFlow reads a block as one call, and plain rows as two thousand.
 */
const mostRead = () => (tf.getBackend() === "tensorflow" ? 1 : 2 / 3);

/** Packed as far as the model's incremental reading reaches, and whole beyond. */
async function scoreWithin(
  lm: CausalLM,
  incremental: Incremental,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const isWithin = sequences.map(({ ids }) => ids.length <= incremental.reach);
  const within = sequences.filter((_, index) => isWithin[index]);
  const packing = packByPrefix(within, options.limits.maxBatchTokens);
  const read = packing.packs.reduce((sum, { tokens }) => sum + tokens, packing.prefix);
  if (read > mostRead() * within.reduce((sum, { ids }) => sum + ids.length, 0))
    return scorePlain(lm, sequences, options);
  const packed = await scorePacked(lm, incremental, within, options, packing);
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
