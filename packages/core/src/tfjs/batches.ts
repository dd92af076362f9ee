import type { CausalLM } from "./causal-lm.ts";
import { reachOf } from "./forward.ts";

export interface ForwardLimits {
  /** Tokens of one forward pass, padding included. */
  readonly maxBatchTokens: number;
  /** Floats of one matrix of logits, [scored rows × vocabulary]. */
  readonly maxLogits: number;
  /** Whether a model that reads incrementally is given what sequences share once. */
  readonly scoring: "packed" | "plain";
}

/** What one forward pass may hold. */
export interface BatchBudget {
  /** Rows × longest row, padding included. */
  readonly maxTokens: number;
  /** Rows of logits. */
  readonly maxScoredRows: number;
  /** Every row is padded to this length; null where rows are padded to the longest of their batch. */
  readonly fixedLength: number | null;
  /** Rows longer than this are in no batch with others: see `reachOf`. */
  readonly reach: number;
}

/** Tokens that a row costs, and rows of logits it asks for. */
export interface BatchCost {
  readonly tokens: number;
  readonly scoredRows: number;
}

/**
 * Groups items of like length, longest first, so that little is padding and a batch too large for memory shows at
 * once. Each batch keeps both budgets; an item that exceeds one by itself goes alone. Depends on the costs and their
 * order only.
 *
 * @returns indices into `costs`; each appears once.
 */
export function batchByLength(
  costs: readonly BatchCost[],
  budget: BatchBudget,
): readonly (readonly number[])[] {
  const order = costs
    .map((_, index) => index)
    .toSorted((a, b) => costs[b]!.tokens - costs[a]!.tokens || a - b);
  const batches: number[][] = [];
  let width = 0;
  let scoredRows = 0;
  for (const index of order) {
    const cost = costs[index]!;
    const batch = batches.at(-1);
    scoredRows += cost.scoredRows;
    const isAlike = width <= budget.reach || cost.tokens > budget.reach;
    const fits = width * ((batch?.length ?? 0) + 1) <= budget.maxTokens && scoredRows <= budget.maxScoredRows;
    if (batch && isAlike && fits) {
      batch.push(index);
    } else {
      batches.push([index]);
      width = budget.fixedLength ?? cost.tokens;
      scoredRows = cost.scoredRows;
    }
  }
  return batches;
}

/** What one pass of this model may hold; at least one row of logits. */
export function batchBudget(lm: CausalLM, { maxBatchTokens, maxLogits }: ForwardLimits): BatchBudget {
  const maxScoredRows = Math.max(1, Math.floor(maxLogits / lm.vocabSize));
  return {
    // Without `logitsAt` the head runs on every token of the batch.
    maxTokens: lm.logitsAt ? maxBatchTokens : Math.min(maxBatchTokens, maxScoredRows),
    maxScoredRows,
    fixedLength: lm.fixedLength ?? null,
    reach: reachOf(lm),
  };
}
