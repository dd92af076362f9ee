import * as tf from "@tensorflow/tfjs-core";
import { batchByLength } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { checkIds } from "@periodic-eval/core/model";
import { inEvaluation } from "../causal-lm/forward.ts";
import {
  blockOf,
  type ExtendOptions,
  type Incremental,
  type KeyValues,
  type TokenBlock,
} from "../causal-lm/incremental.ts";
import { sharedLength, shortestPrefix } from "../scoring/packing.ts";

/** Prompts that were read. The caller disposes the logits and the caches. */
export interface ReadPrompts {
  /** Logits [prompts, V] after the last token of each prompt. */
  readonly logits: tf.Tensor2D;
  /** The cached beginning that all prompts share, one row, in pieces. */
  readonly common: readonly KeyValues[];
  /** The cached rest, one row per prompt; null if all prompts are equal. */
  readonly own: KeyValues | null;
}

/**
 * Reads prompts: a common beginning once, and equal prompts once.
 *
 * @param maxBatchTokens Tokens to read at once, including padding.
 */
export function readPrompts(
  lm: CausalLM,
  incremental: Incremental,
  given: readonly (readonly number[])[],
  maxBatchTokens: number,
): ReadPrompts {
  for (const prompt of given) checkIds(prompt, lm.vocabSize);
  const { prompts, of } = distinct(given);
  const prefix = prefixLength(prompts);
  const batches = batchByLength(
    prompts.map(({ length }) => ({ tokens: length - prefix, scoredRows: 1 })),
    { maxTokens: maxBatchTokens, maxScoredRows: Infinity, fixedLength: null, reach: Infinity },
  );
  const inGivenOrder = batches.map((batch) => batch.toSorted((a, b) => a - b));
  const logits: tf.Tensor2D[] = [];
  const pieces: KeyValues[] = [];
  const common: KeyValues[] = [];
  let own: KeyValues | null = null;
  try {
    if (prefix > 0) {
      const block = blockOf([prompts[0]!.slice(0, prefix)], 0);
      common.push(readBlock(lm, incremental, block, { rows: [] }).keyValues!);
    }
    for (const batch of inGivenOrder) {
      const block = blockOf(
        batch.map((index) => prompts[index]!.slice(prefix)),
        prefix,
      );
      const last = batch.map((index, row) => row * block.length + prompts[index]!.length - prefix - 1);
      const read = readBlock(lm, incremental, block, { past: common, rows: last });
      logits.push(read.logits!);
      pieces.push(read.keyValues!);
    }
    const at = new Map(inGivenOrder.flat().map((index, row) => [index, row]));
    const rowOf = of.map((prompt) => at.get(prompt)!);
    if (prompts.length === given.length && pieces.length === 1) own = pieces.pop()!;
    else if (prompts.length === 1) common.push(pieces.pop()!);
    else own = pieces[0]!.stack(pieces.slice(1)).select(rowOf);
    return {
      logits: tf.tidy(() => tf.gather(tf.concat(logits), tf.tensor1d(rowOf, "int32"))),
      common,
      own,
    };
  } catch (error) {
    for (const piece of [...common, own]) piece?.dispose();
    throw error;
  } finally {
    tf.dispose(logits);
    for (const piece of pieces) piece.dispose();
  }
}

/** Reads a block in evaluation mode. Returns the logits at `rows` (null for no rows), and the keys and values unless `into` is set. */
export function readBlock(
  lm: CausalLM,
  { extend, logitsOf }: Incremental,
  block: TokenBlock,
  { past = [], rows, into = null }: Omit<ExtendOptions, "keep">,
): { readonly logits: tf.Tensor2D | null; readonly keyValues: KeyValues | null } {
  return inEvaluation(lm, () => {
    const { states, keyValues } = extend(block, { past, rows, into, keep: into === null });
    try {
      return { logits: rows.length === 0 ? null : tf.tidy(() => logitsOf(states)), keyValues };
    } catch (error) {
      keyValues?.dispose();
      throw error;
    } finally {
      states.dispose();
    }
  });
}

/** Returns the length of the common beginning to read separately; 0 if that saves nothing. */
function prefixLength(prompts: readonly (readonly number[])[]): number {
  const shortest = Math.min(...prompts.map(({ length }) => length));
  // Excludes the last token of every prompt, whose logits are needed.
  const shared = prompts.reduce((length, ids) => sharedLength(prompts[0]!, ids, length), shortest - 1);
  return prompts.length > 1 && shared >= shortestPrefix ? shared : 0;
}

/** Returns each prompt once, and for every given prompt the index of it. */
function distinct(given: readonly (readonly number[])[]): {
  readonly prompts: readonly (readonly number[])[];
  readonly of: readonly number[];
} {
  const known = new Map<string, number>();
  const prompts: (readonly number[])[] = [];
  const of = given.map((ids) => {
    const key = ids.join();
    const index = known.get(key) ?? prompts.push(ids) - 1;
    known.set(key, index);
    return index;
  });
  return { prompts, of };
}
