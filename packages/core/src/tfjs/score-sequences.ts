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
  const { incremental, fixedLength } = lm;
  const isPacked =
    options.limits.scoring === "packed" && incremental !== undefined && fixedLength === undefined;
  const all = isPacked
    ? await scorePacked(lm, incremental, sequences, options)
    : await scorePlain(lm, sequences, options);
  for (const { nats } of all.scores) refuseNaN(nats);
  return all;
}

/** Whether sequences are scored packed. */
export function canPack<T extends CausalLM>(
  lm: T,
  { scoring }: ForwardLimits,
): lm is T & Required<Pick<T, "incremental">> {
  return scoring === "packed" && lm.incremental !== undefined && lm.fixedLength === undefined;
}
