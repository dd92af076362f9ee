import {
  bulkTokenizer,
  type CallOptions,
  type Completion,
  type GenerateRequest,
  type Tokenizer,
} from "@periodic-eval/core";
import { beginWriting, completionOf, fitRequests, writeAll } from "@periodic-eval/tokenizers";
import { compiledKernels } from "../batching/engine-memory.ts";
import { batchBudget, type BatchBudget, type ForwardLimits, inBatches } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { incrementalOf, reachOf, windowLength } from "../causal-lm/forward.ts";
import { refuseNaN } from "../scoring/device-scores.ts";
import { drawFromEach, mostLikely } from "./draws.ts";
import { nextLogits } from "./next-logits.ts";

/**
 * Generates completions of prompts of different lengths, batched by length. Every sequence draws from the random stream that its
 * seed names, so its numbers do not depend on the other sequences of its batch.
 *
 * - `text` has no special tokens and ends before the first stop string. `ids` and `tokenNats` contain every drawn token,
 *   including the stop id or the tokens of the stop string. Nats are of the model's distribution, before temperature, top-k and
 *   top-p.
 * - `finish` is `"length"` at `maxNewTokens` or when the model's context is full.
 *
 * @throws PeriodicEvalError `config` for a wrong sampling setting; `data` for a prompt longer than the context length, because a
 *   completion cannot report what was cut; `model` for NaN logits; `aborted`, checked between tokens.
 */
export async function generate(
  lm: CausalLM,
  tokenizer: Tokenizer,
  requests: readonly GenerateRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly Completion[]> {
  const window = windowLength(lm);
  const prompts = await fitRequests(bulkTokenizer(tokenizer), requests, window, { signal });
  const completions: Completion[] = [];
  let tokens = 0;
  const longest = prompts.map(({ prompt, room }) => prompt.length + room - 1);
  const reach = reachOf(lm);
  for (const [isGreedy, isWithin] of kinds) {
    const group = prompts.flatMap(({ sampling }, index) => {
      const isOfKind = (sampling.temperature === 0) === isGreedy && longest[index]! <= reach === isWithin;
      return isOfKind ? [index] : [];
    });
    const costs = group.map((index) => ({ tokens: longest[index]!, scoredRows: 1 }));
    const budget = generationBudget(lm, isWithin, limits);
    await inBatches(lm, costs, budget, { signal, where: "generate" }, async (batch) => {
      const indices = batch.map((at) => group[at]!);
      // A batch that ran out of memory is repeated from here, so its streams start again.
      const writings = indices.map((index) => beginWriting(prompts[index]!));
      const draw = isGreedy ? mostLikely : drawFromEach;
      // Smaller batches of prompts have less padding, because prompts differ in length.
      const reader = nextLogits(lm, Math.ceil(limits.maxBatchTokens / 2));
      try {
        await writeAll(tokenizer, writings, signal, async (rows) => {
          const drawn = await draw(reader.next(rows), rows);
          refuseNaN(drawn.map(({ nats }) => nats));
          return drawn;
        });
      } finally {
        reader.dispose();
      }
      writings.forEach((writing, row) => {
        completions[indices[row]!] = completionOf(tokenizer, writing);
        tokens += writing.prompt.length + writing.ids.length;
      });
    });
  }
  countTokens?.(tokens);
  return completions;
}

/**
 * Groups of requests that are batched separately, as [isGreedy, isWithin]. A greedy batch downloads two numbers per row instead
 * of V. Sequences that may grow beyond the model's `reach` are read whole, which takes more memory per row.
 */
const kinds = [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
] as const;

/**
 * Largest size of the cached keys and values in bytes. A step for sixteen sequences takes little longer than for one, so large batches
 * are faster. 1.5 GiB hold the 40 completions of SmolLM2's default alignment measurement.
 */
const maxCachedBytes = (): number => (compiledKernels() ? 1.5 * 2 ** 30 : 2 ** 29);

function generationBudget(lm: CausalLM, isWithin: boolean, limits: ForwardLimits): BatchBudget {
  const budget = batchBudget(lm, limits);
  const incremental = incrementalOf(lm);
  if (incremental === null || !isWithin) return budget;
  const cached = Math.floor(maxCachedBytes() / incremental.tokenBytes);
  return { ...budget, maxTokens: Math.max(cached, limits.maxBatchTokens) };
}
