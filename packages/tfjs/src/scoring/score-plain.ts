import type { ScoredSequence } from "@periodic-eval/tokenizers";
import { batchBudget, type ForwardLimits, inBatches } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { logitsAtPositions } from "../causal-lm/forward.ts";
import { scorePicks, type Pick } from "./device-scores.ts";

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
    const { nats, isTop, entropyNats, greedyIds } = await scorePicks(
      (from, to) => logitsAtPositions(lm, ids, positions.slice(from, to)),
      { rows: positions.length, picks, withEntropy, withGreedyIds, maxRows: budget.maxScoredRows },
    );
    let [pick, row] = [0, 0];
    for (const index of batch) {
      const { picks: requested } = sequences[index]!;
      const [fromPick, fromRow] = [pick, row];
      pick += requested.reduce((sum, tokens) => sum + tokens.length, 0);
      row += requested.length;
      scores[index] = {
        nats: nats.slice(fromPick, pick),
        isTop: isTop.slice(fromPick, pick),
        entropyNats: entropyNats.slice(fromRow, row),
        greedyIds: greedyIds.slice(fromPick, pick),
      };
    }
  });
  return { scores, tokens: sequences.reduce((sum, { ids }) => sum + ids.length, 0) };
}

export const firstScored = ({ ids, picks }: ScoredSequence): number => ids.length - picks.length;

/** The scores of one sequence. */
export interface Scores {
  /** log p of the picks of all positions, in nats, in order. */
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  /** Entropy per scored position, in nats; empty if not requested. */
  readonly entropyNats: readonly number[];
  /** The most likely token in place of each pick; empty if not requested. */
  readonly greedyIds: readonly number[];
}

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
