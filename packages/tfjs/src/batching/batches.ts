import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { reachOf } from "../causal-lm/forward.ts";

/** Limits of forward passes. */
export interface ForwardLimits {
  /** Tokens of one forward pass, including padding. */
  readonly maxBatchTokens: number;
  /** Numbers in one matrix of logits [scored rows, vocabulary]. */
  readonly maxLogits: number;
  /** `packed`: a model that reads incrementally reads a common beginning of sequences once. `plain`: one row per sequence. */
  readonly scoring: "packed" | "plain";
}

/** The size of one batch. */
export interface BatchBudget {
  /** Rows × longest row, including padding. */
  readonly maxTokens: number;
  /** Rows of logits. */
  readonly maxScoredRows: number;
  /** Every row is padded to this length; null if rows are padded to the longest of their batch. */
  readonly fixedLength: number | null;
  /** Rows with more tokens are not batched with shorter rows: see `reachOf`. */
  readonly reach: number;
}

/** Tokens of one item, and the rows of logits it needs. */
export interface BatchCost {
  readonly tokens: number;
  readonly scoredRows: number;
}

/**
 * Groups items of similar length into batches, longest first, so that there is little padding and a batch that is too large for
 * memory fails first. Each batch stays within the budget; an item that alone exceeds it gets its own batch. The result depends
 * only on the costs and their order.
 *
 * @returns Indices into `costs`; each occurs once.
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

/** Returns the batch budget of a model, with at least one row of logits. */
export function batchBudget(lm: CausalLM, { maxBatchTokens, maxLogits }: ForwardLimits): BatchBudget {
  const maxScoredRows = Math.max(1, Math.floor(maxLogits / lm.vocabSize));
  return {
    // Without `logitsAt` the head computes logits for every token of the batch.
    maxTokens: lm.logitsAt ? maxBatchTokens : Math.min(maxBatchTokens, maxScoredRows),
    maxScoredRows,
    fixedLength: lm.fixedLength ?? null,
    reach: reachOf(lm),
  };
}
