import { PeriodicEvalError } from "../errors.ts";
import { messageOf } from "../message-of.ts";
import { type BatchBudget, batchByLength, type BatchCost } from "./batches.ts";
import { breathe } from "./breathe.ts";
import type { CausalLM } from "./causal-lm.ts";

/** Rows × longest row with which memory gave out last, halved; a later call does not learn it anew. */
const learned = new WeakMap<CausalLM, number>();

/**
 * Does work batch by batch, as `batchByLength` groups it. Where memory gives out for a batch, it and what follows are
 * done in batches of half the size, as often as it takes.
 *
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
  let left = costs.map((_, index) => index);
  while (left.length > 0) {
    const maxTokens = Math.min(budget.maxTokens, learned.get(lm) ?? Infinity);
    const remaining = left;
    const batches = batchByLength(
      remaining.map((index) => costs[index]!),
      { ...budget, maxTokens },
    );
    for (const batch of batches) {
      const indices = batch.map((at) => remaining[at]!);
      await breathe(signal, where);
      try {
        await work(indices);
      } catch (error) {
        if (!isOutOfMemory(error)) throw error;
        const width = budget.fixedLength ?? Math.max(...indices.map((index) => costs[index]!.tokens));
        if (indices.length === 1) throw noMemory(where, width, error);
        learned.set(lm, Math.floor((width * indices.length) / 2));
        break;
      }
      const done = new Set(indices);
      left = left.filter((index) => !done.has(index));
    }
  }
}

/** As TensorFlow, WebAssembly, WebGPU and V8 say it. */
function isOutOfMemory(error: unknown): boolean {
  return /out of memory|\bOOM\b|resource ?exhausted|failed to allocate|allocation failed|memory access out of bounds|array buffer allocation/i.test(
    messageOf(error),
  );
}

function noMemory(where: string, tokens: number, cause: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where,
    got: `no memory for one row of ${tokens} tokens: ${messageOf(cause)}`,
    expected: "memory for the longest row",
    fix: "Shorten the longest prompt, free memory, or choose an engine with more of it.",
    cause,
  });
}
