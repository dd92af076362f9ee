import type { ScoredSequence } from "@periodic-eval/tokenizers";
import { batchBudget, type ForwardLimits, inBatches } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { logitsAtPositions } from "../causal-lm/forward.ts";
import { scorePicks, type Pick, type Scores } from "./device-scores.ts";

/** Scores sequences in one row each, batched by length. */
export async function scorePlain(
  lm: CausalLM,
  sequences: readonly ScoredSequence[],
  { signal, limits, withEntropy, withGreedyIds = false }: ScoreOptions,
): Promise<AllScores> {
  const budget = batchBudget(lm, limits);
  const costs = sequences.map(({ ids, picks }) => ({ tokens: ids.length, scoredRows: picks.length }));
  const scores: Scores[] = [];
  await inBatches(lm, costs, budget, { signal, where: "scoring" }, async (batch) => {
    const rows = batch.map((index) => sequences[index]!);
    const ids = rows.map((sequence) => sequence.ids);
    const positions = rows.flatMap(({ ids: { length }, picks }, sequence) =>
      picks.map((_, index) => ({ sequence, at: length - picks.length + index })),
    );
    const picks = rows
      .flatMap((sequence) => sequence.picks)
      .flatMap((tokens, row) => tokens.map((token): Pick => ({ row, token })));
    // Several chunks occur only if one sequence exceeds the budget of logits; the model then runs once per chunk.
    const scored = await scorePicks((from, to) => logitsAtPositions(lm, ids, positions.slice(from, to)), {
      rows: positions.length,
      picks,
      withEntropy,
      withGreedyIds,
      maxRows: budget.maxScoredRows,
    });
    let [pick, row] = [0, 0];
    for (const index of batch) {
      const { picks: requested } = sequences[index]!;
      const [firstPick, lastPick] = [pick, (pick += requested.flat().length)];
      scores[index] = scoresOf(
        scored,
        firstPick,
        lastPick,
        requested.map(() => row++),
      );
    }
  });
  return { scores, tokens: sequences.reduce((sum, { ids }) => sum + ids.length, 0) };
}

/** Returns the scores of one sequence, whose picks are contiguous, from those of a batch. */
export const scoresOf = (
  batch: Scores,
  firstPick: number,
  lastPick: number,
  rows: readonly number[],
): Scores => ({
  nats: batch.nats.slice(firstPick, lastPick),
  isTop: batch.isTop.slice(firstPick, lastPick),
  greedyIds: batch.greedyIds.slice(firstPick, lastPick),
  entropyNats: batch.entropyNats.length > 0 ? rows.map((row) => batch.entropyNats[row]!) : [],
});

export const firstScored = ({ ids, picks }: ScoredSequence): number => ids.length - picks.length;

export interface ScoreOptions {
  readonly signal: AbortSignal;
  readonly limits: ForwardLimits;
  readonly withEntropy: boolean;
  /** Default false. */
  readonly withGreedyIds?: boolean;
}

export interface AllScores {
  /** One per sequence, in their order. */
  readonly scores: readonly Scores[];
  /** Tokens that the model read, without padding. */
  readonly tokens: number;
}
