import * as tf from "@tensorflow/tfjs-core";
import { checkIds, sharedLength } from "@periodic-eval/tokenizers";
import { batchByLength } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { incrementalOf, logitsAtPositions, inEvaluation } from "../causal-lm/forward.ts";
import {
  everySegment,
  type Incremental,
  type KeyValues,
  type TokenBlock,
  blockOf,
  type ExtendOptions,
} from "../causal-lm/incremental.ts";
import { shortestPrefix } from "../scoring/packing.ts";

/** A sequence that grows by one token per step. */
export interface Growing {
  readonly prompt: readonly number[];
  readonly ids: readonly number[];
}

/** Reads growing sequences, one token per call. */
export interface NextLogits {
  /**
   * Returns the logits [rows, V] of the token after each sequence; the caller disposes them. From the second call on, finished
   * sequences may be missing; the others must be in the same order and one token longer.
   */
  next(rows: readonly Growing[]): tf.Tensor2D;
  dispose(): void;
}

/**
 * Returns a reader that caches keys and values up to the model's `reach`. Longer sequences, and all sequences of a model without
 * incremental reading, are read whole at every step.
 *
 * @param maxBatchTokens Tokens of prompts to read at once, including padding, if there is a cache.
 */
export function nextLogits(lm: CausalLM, maxBatchTokens: number): NextLogits {
  const incremental = incrementalOf(lm);
  if (incremental === null) return { next: (rows) => readWhole(lm, rows), dispose() {} };
  const near = cached(lm, incremental, maxBatchTokens);
  const isNear = ({ prompt, ids }: Growing) => prompt.length + ids.length <= incremental.reach;
  return {
    next(rows) {
      const within = rows.filter(isNear);
      if (within.length === rows.length) return near.next(rows);
      // Sequences only grow, so the cache is not needed again.
      if (within.length === 0) near.dispose();
      const beyond = rows.filter((row) => !isNear(row));
      const parts: tf.Tensor2D[] = [];
      try {
        if (within.length > 0) parts.push(near.next(within));
        parts.push(readWhole(lm, beyond));
        const at = new Map([...within, ...beyond].map((row, index) => [row, index]));
        const order = rows.map((row) => at.get(row)!);
        return tf.tidy(() => tf.gather(tf.concat(parts), tf.tensor1d(order, "int32")));
      } finally {
        tf.dispose(parts);
      }
    },
    dispose: () => near.dispose(),
  };
}

function readWhole(lm: CausalLM, rows: readonly Growing[]): tf.Tensor2D {
  const sequences = rows.map(({ prompt, ids }) => [...prompt, ...ids]);
  const last = sequences.map((ids, sequence) => ({ sequence, at: ids.length - 1 }));
  return logitsAtPositions(lm, sequences, last);
}

/** A cache with at most this many tokens is copied to append one; a larger cache gets a tail. */
const copiedTokens = 256;
/** Number of tokens in the tail at which it is joined to the cache. */
const tailLength = 32;

function cached(lm: CausalLM, incremental: Incremental, maxBatchTokens: number): NextLogits {
  /** The common beginning of all sequences, one row. */
  let common: readonly KeyValues[] = [];
  /** One row per sequence: the rest of its prompt and its drawn tokens. */
  let rest: KeyValues | null = null;
  let tail: KeyValues | null = null;
  let previous: readonly Growing[] | null = null;

  function readFirst(rows: readonly Growing[]): tf.Tensor2D {
    const prompts = rows.map(({ prompt }) => prompt);
    const { logits, ...caches } = readPrompts(lm, incremental, prompts, maxBatchTokens);
    ({ common, rest } = caches);
    return logits;
  }

  function readDrawn(rows: readonly Growing[]): tf.Tensor2D {
    if (rows.length < previous!.length) {
      const remaining = new Set(rows);
      const left = previous!.flatMap((row, index) => (remaining.has(row) ? [index] : []));
      rest &&= rest.select(left);
      tail &&= tail.select(left);
    }
    const block: TokenBlock = {
      batch: rows.length,
      length: 1,
      ids: Int32Array.from(rows, ({ ids }) => ids.at(-1)!),
      positions: Int32Array.from(rows, ({ prompt, ids }) => prompt.length + ids.length - 1),
      segments: new Int32Array(rows.length),
      lastSegments: new Int32Array(rows.length).fill(everySegment),
    };
    const isSmall = tail === null && rest !== null && rest.batch * rest.length < copiedTokens;
    const into = isSmall ? rest : tail;
    const past = [...common, rest].filter((piece) => piece !== null && piece !== into) as KeyValues[];
    const every = rows.map((_, row) => row);
    const { logits, keyValues } = readBlock(lm, incremental, block, { past, rows: every, into });
    tail ??= keyValues;
    if (tail !== null && tail.length >= tailLength) {
      rest = rest === null ? tail : rest.append(tail);
      tail = null;
    }
    return logits!;
  }

  return {
    next(rows) {
      const logits = previous === null ? readFirst(rows) : readDrawn(rows);
      previous = rows;
      return logits;
    },
    dispose() {
      for (const piece of [...common, rest, tail]) piece?.dispose();
      [common, rest, tail] = [[], null, null];
    },
  };
}

/** Prompts that were read. The caller disposes the logits and the caches. */
interface ReadPrompts {
  /** Logits [prompts, V] after the last token of each prompt. */
  readonly logits: tf.Tensor2D;
  /** The cached beginning that all prompts share, one row, in pieces. */
  readonly common: readonly KeyValues[];
  /** The cached rest, one row per prompt; null if all prompts are equal. */
  readonly rest: KeyValues | null;
}

/**
 * Reads prompts: a common beginning once, and equal prompts once.
 *
 * @param maxBatchTokens Tokens to read at once, including padding.
 */
function readPrompts(
  lm: CausalLM,
  incremental: Incremental,
  allPrompts: readonly (readonly number[])[],
  maxBatchTokens: number,
): ReadPrompts {
  for (const prompt of allPrompts) checkIds(prompt, lm.vocabSize);
  const { prompts, of } = distinct(allPrompts);
  const prefix = prefixLength(prompts);
  const batches = batchByLength(
    prompts.map(({ length }) => ({ tokens: length - prefix, scoredRows: 1 })),
    { maxTokens: maxBatchTokens, maxScoredRows: Infinity, fixedLength: null, reach: Infinity },
  );
  const inGivenOrder = batches.map((batch) => batch.toSorted((a, b) => a - b));
  const logits: tf.Tensor2D[] = [];
  const pieces: KeyValues[] = [];
  const common: KeyValues[] = [];
  let rest: KeyValues | null = null;
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
    if (prompts.length === allPrompts.length && pieces.length === 1) rest = pieces.pop()!;
    else if (prompts.length === 1) common.push(pieces.pop()!);
    else rest = pieces[0]!.stack(pieces.slice(1)).select(rowOf);
    return {
      logits: tf.tidy(() => tf.gather(tf.concat(logits), tf.tensor1d(rowOf, "int32"))),
      common,
      rest,
    };
  } catch (error) {
    for (const piece of [...common, rest]) piece?.dispose();
    throw error;
  } finally {
    tf.dispose(logits);
    for (const piece of pieces) piece.dispose();
  }
}

/** Reads a block in evaluation mode. Returns the logits at `rows` (null for no rows), and the keys and values unless `into` is set. */
function readBlock(
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
function distinct(allPrompts: readonly (readonly number[])[]): {
  readonly prompts: readonly (readonly number[])[];
  readonly of: readonly number[];
} {
  const known = new Map<string, number>();
  const prompts: (readonly number[])[] = [];
  const of = allPrompts.map((ids) => {
    const key = ids.join();
    const index = known.get(key) ?? prompts.push(ids) - 1;
    known.set(key, index);
    return index;
  });
  return { prompts, of };
}
