import { PeriodicEvalError } from "../errors.ts";
import { errorMessage } from "../internal/error-message.ts";
import { type BatchBudget, batchByLength, type BatchCost } from "./batches.ts";
import { breathe } from "./breathe.ts";
import type { CausalLM } from "./causal-lm.ts";

/** What memory was found to allow. */
interface Learned {
  /** Rows × longest row. */
  readonly maxTokens: number;
  /** Rows × longest row of the batches since, summed. */
  done: number;
}

/** By what is done, which differs in what a token takes; a later call does not learn it anew. */
const learned = new WeakMap<CausalLM, Map<string, Learned>>();

/** As many batches have memory before one of twice the size is tried: memory may have been short for a moment. */
const patience = 16;

/**
 * Does work batch by batch, as `batchByLength` groups it. Where memory gives out for a batch, it and what follows are
 * done in batches of half the size, as often as it takes; they grow again after a while.
 *
 * @param where names the work: what is learned of memory is of this work of this model
 * @throws PeriodicEvalError `model` where memory gives out for one row alone; `aborted`, looked for between batches;
 *   and what `work` throws.
 */
export async function inBatches(
  lm: CausalLM,
  costs: readonly BatchCost[],
  budget: BatchBudget,
  { signal, where }: { readonly signal: AbortSignal; readonly where: string },
  work: (batch: readonly number[]) => Promise<void>,
): Promise<void> {
  const limits = learned.get(lm) ?? new Map<string, Learned>();
  learned.set(lm, limits);
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
      await breathe(signal, where);
      try {
        await work(indices);
      } catch (error) {
        if (!isOutOfMemory(error)) throw error;
        if (indices.length === 1) throw noMemory(where, width, error);
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

/** As TensorFlow, WebAssembly, WebGPU and V8 say it. */
function isOutOfMemory(error: unknown): boolean {
  return /out of memory|\bOOM\b|resource ?exhausted|failed to allocate|allocation failed|memory access out of bounds|array buffer allocation/i.test(
    errorMessage(error),
  );
}

function noMemory(where: string, tokens: number, cause: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where,
    got: `no memory for one row of ${tokens} tokens: ${errorMessage(cause)}`,
    expected: "memory for the longest row",
    fix: "Shorten the longest prompt, free memory, or choose an engine with more of it.",
    cause,
  });
}
