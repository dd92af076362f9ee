import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { reachOf } from "../causal-lm/forward.ts";
import { groupByLength } from "@periodic-eval/tokenizers";
import { yieldToEvents } from "@periodic-eval/core/model";
import { isOutOfMemory, memoryErrorOf } from "./engine-memory.ts";

/** Limits of forward passes. */
export interface ForwardLimits {
  /** Tokens of one forward pass, including padding. */
  readonly maxBatchTokens: number;
  /** Numbers in one matrix of logits [scored rows, vocabulary]. */
  readonly maxLogits: number;
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

/** Groups items of similar length into batches within the budget. The result depends only on the costs and their order. */
export function batchByLength(
  costs: readonly BatchCost[],
  budget: BatchBudget,
): readonly (readonly number[])[] {
  const { maxTokens, maxScoredRows, fixedLength, reach } = budget;
  return groupByLength(
    costs.map(({ tokens }) => tokens),
    (batch) => {
      const width = fixedLength ?? costs[batch[0]!]!.tokens;
      const isAlike = width <= reach || costs[batch.at(-1)!]!.tokens > reach;
      const scoredRows = batch.reduce((sum, index) => sum + costs[index]!.scoredRows, 0);
      return isAlike && width * batch.length <= maxTokens && scoredRows <= maxScoredRows;
    },
  );
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

/** A batch size that fits into memory. */
interface MemoryLimit {
  readonly maxTokens: number;
  /** Σ rows × longest row of the batches since the limit was set. */
  done: number;
}

/** Limits per model and kind of work, which differ in their memory per token. Later calls reuse them. */
const memoryLimits = new WeakMap<CausalLM, Map<string, MemoryLimit>>();

/** Number of full batches before the size is doubled again, because memory may have been short only temporarily. */
const patience = 16;

/**
 * Runs work batch by batch, as grouped by `batchByLength`. If a batch runs out of memory, it and all following batches get half
 * the size, repeatedly if needed; later the size grows again.
 *
 * @param where Names the work. Sizes that fit into memory are remembered per model and work.
 * @throws PeriodicEvalError `memory` if a single row runs out of memory; `aborted`, checked between batches. Other errors of
 *   `work` pass through.
 */
export async function inBatches(
  lm: CausalLM,
  costs: readonly BatchCost[],
  budget: BatchBudget,
  { signal, where }: { readonly signal: AbortSignal; readonly where: string },
  work: (batch: readonly number[]) => Promise<void>,
): Promise<void> {
  const limits = memoryLimits.get(lm) ?? new Map<string, MemoryLimit>();
  memoryLimits.set(lm, limits);
  let left = costs.map((_, index) => index);
  while (left.length > 0) {
    const limit = limits.get(where);
    const maxTokens = Math.min(budget.maxTokens, limit?.maxTokens ?? Infinity);
    const remaining = left;
    const batches = batchByLength(
      remaining.map((index) => costs[index]!),
      { ...budget, maxTokens },
    );
    for (const batch of batches) {
      const indices = batch.map((at) => remaining[at]!);
      const width = budget.fixedLength ?? Math.max(...indices.map((index) => costs[index]!.tokens));
      const size = width * indices.length;
      await yieldToEvents(signal, where);
      try {
        await work(indices);
      } catch (error) {
        if (!isOutOfMemory(error)) throw error;
        if (indices.length === 1) throw memoryErrorOf(error, `${where}, one row of ${width} tokens`);
        limits.set(where, { maxTokens: Math.floor(size / 2), done: 0 });
        break;
      }
      const done = new Set(indices);
      left = left.filter((index) => !done.has(index));
      if (limit === undefined) continue;
      limit.done += size;
      if (limit.done < patience * limit.maxTokens) continue;
      limits.set(where, { maxTokens: 2 * limit.maxTokens, done: 0 });
      break;
    }
  }
}
