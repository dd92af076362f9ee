import * as tf from "@tensorflow/tfjs-core";
import type { ForwardLimits } from "../batching/batches.ts";
import { isOnDevice } from "../batching/device.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { incrementalOf } from "../causal-lm/forward.ts";
import type { Incremental } from "../causal-lm/incremental.ts";
import { refuseNaN } from "./device-scores.ts";
import { packByPrefix } from "./packing.ts";
import { scorePacked } from "./score-packed.ts";
import { scorePlain, type AllScores, type ScoredSequence, type ScoreOptions } from "./score-plain.ts";

/**
 * Scores sequences with one download per batch: packed if the model reads incrementally, else one row per sequence.
 *
 * @throws PeriodicEvalError `model` for NaN logits, or if one row runs out of memory; `aborted`.
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
 * Returns the share of tokens up to which packing is faster than plain scoring. Packing has costs for a mask per row and for
 * joining pieces. On wasm with the embedded model, 200 letters questions that share only a system prompt took 1.0 s packed and
 * 0.6 s plain; cloze questions 0.4 s and 0.75 s. Native TensorFlow on the CPU runs a block in one call and plain rows in two thousand.
 */
const maxReadShare = () => (tf.getBackend() === "tensorflow" && !isOnDevice() ? 1 : 2 / 3);

/** Scores packed up to the model's `reach`, and longer sequences whole. */
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
  if (read > maxReadShare() * within.reduce((sum, { ids }) => sum + ids.length, 0))
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

/** Returns the incremental reading for packed scoring; null if sequences are scored one row each. */
export const packingOf = (lm: CausalLM, { scoring }: ForwardLimits): Incremental | null =>
  scoring === "packed" ? incrementalOf(lm) : null;
