import type { ForwardLimits } from "./batches.ts";
import type { CausalLM } from "./causal-lm.ts";
import { refuseNaN } from "./device-scores.ts";
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
  const all = canPack(lm, options.limits)
    ? await scoreWithin(lm, sequences, options)
    : await scorePlain(lm, sequences, options);
  for (const { nats } of all.scores) refuseNaN(nats);
  return all;
}

/** Packed as far as the model's incremental reading reaches, and whole beyond. */
async function scoreWithin(
  lm: CanPack<CausalLM>,
  sequences: readonly ScoredSequence[],
  options: ScoreOptions,
): Promise<AllScores> {
  const isWithin = sequences.map(({ ids }) => ids.length <= lm.incremental.reach);
  const within = sequences.filter((_, index) => isWithin[index]);
  const packed = await scorePacked(lm, lm.incremental, within, options);
  if (within.length === sequences.length) return packed;
  const beyond = sequences.filter((_, index) => !isWithin[index]);
  const plain = await scorePlain(lm, beyond, options);
  const [ofPacked, ofPlain] = [packed.scores.values(), plain.scores.values()];
  return {
    scores: isWithin.map((is) => (is ? ofPacked : ofPlain).next().value!),
    tokens: packed.tokens + plain.tokens,
  };
}

type CanPack<T extends CausalLM> = T & Required<Pick<T, "incremental">>;

/** Whether sequences are scored packed. */
export function canPack<T extends CausalLM>(lm: T, { scoring }: ForwardLimits): lm is CanPack<T> {
  return scoring === "packed" && lm.incremental !== undefined && lm.fixedLength === undefined;
}
