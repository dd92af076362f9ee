import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import type { Incremental, KeyValues, TokenBlock } from "../causal-lm/incremental.ts";
import { checkIds, incrementalOf, inEvaluation, logitsAtPositions } from "../causal-lm/forward.ts";
import { batchByLength } from "../batching/batches.ts";
import { sharedLength } from "../scoring/branches.ts";
import { shortestPrefix } from "../scoring/packing.ts";
import { blockOf, trunk } from "../causal-lm/token-block.ts";

/** A sequence that grows by one token per step. */
export interface Growing {
  readonly prompt: readonly number[];
  /** Tokens drawn so far. */
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

function cached(lm: CausalLM, { extend, logitsOf }: Incremental, maxBatchTokens: number): NextLogits {
  /** The common beginning of all sequences, one row. */
  let common: KeyValues[] = [];
  /** One row per sequence: the rest of its prompt and its drawn tokens. */
  let own: KeyValues | null = null;
  let tail: KeyValues | null = null;
  let held: readonly Growing[] | null = null;

  /** Returns the logits at `rows` of a block, and the block's keys and values. */
  function read(
    block: TokenBlock,
    past: readonly KeyValues[],
    rows: readonly number[],
    into: KeyValues | null = null,
  ) {
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

  function replace(old: KeyValues | null, made: KeyValues | null): KeyValues | null {
    old?.dispose();
    return made;
  }

  function readPrompts(rows: readonly Growing[]): tf.Tensor2D {
    for (const { prompt } of rows) checkIds(prompt, lm.vocabSize);
    const { prompts, of } = distinct(rows.map(({ prompt }) => prompt));
    const shortest = Math.min(...prompts.map(({ length }) => length));
    // The common beginning excludes the last token of every prompt, whose logits are needed.
    const shared = prompts.reduce((length, ids) => sharedLength(prompts[0]!, ids, length), shortest - 1);
    const prefix = prompts.length > 1 && shared >= shortestPrefix ? shared : 0;
    if (prefix > 0) common = [read(blockOf([prompts[0]!.slice(0, prefix)], 0), [], []).keyValues!];
    const batches = batchByLength(
      prompts.map(({ length }) => ({ tokens: length - prefix, scoredRows: 1 })),
      { maxTokens: maxBatchTokens, maxScoredRows: Infinity, fixedLength: null, reach: Infinity },
    );
    const inGivenOrder = batches.map((batch) => batch.toSorted((a, b) => a - b));
    const logits: tf.Tensor2D[] = [];
    const pieces: KeyValues[] = [];
    try {
      for (const batch of inGivenOrder) {
        const block = blockOf(
          batch.map((index) => prompts[index]!.slice(prefix)),
          prefix,
        );
        const last = batch.map((index, row) => row * block.length + prompts[index]!.length - prefix - 1);
        const one = read(block, common, last);
        logits.push(one.logits!);
        pieces.push(one.keyValues!);
      }
      const at = new Map(inGivenOrder.flat().map((index, row) => [index, row]));
      const rowOf = of.map((prompt) => at.get(prompt)!);
      if (prompts.length === rows.length && pieces.length === 1) own = pieces.pop()!;
      else if (prompts.length === 1) common = [...common, pieces.pop()!];
      else own = inOrder(pieces.splice(0), rowOf);
      return tf.tidy(() => tf.gather(tf.concat(logits), tf.tensor1d(rowOf, "int32")));
    } finally {
      tf.dispose(logits);
      for (const piece of pieces) piece.dispose();
    }
  }

  function readDrawn(rows: readonly Growing[]): tf.Tensor2D {
    if (rows.length < held!.length) {
      const kept = new Set(rows);
      const left = held!.flatMap((row, index) => (kept.has(row) ? [index] : []));
      own = own && replace(own, own.select(left));
      tail = tail && replace(tail, tail.select(left));
    }
    const block: TokenBlock = {
      batch: rows.length,
      length: 1,
      ids: Int32Array.from(rows, ({ ids }) => ids.at(-1)!),
      positions: Int32Array.from(rows, ({ prompt, ids }) => prompt.length + ids.length - 1),
      ...trunk(rows.length),
    };
    const isSmall = tail === null && own !== null && own.batch * own.length < copiedTokens;
    const into = isSmall ? own : tail;
    const past = [...common, own].filter((piece) => piece !== null && piece !== into) as KeyValues[];
    const every = rows.map((_, row) => row);
    const { logits, keyValues } = read(block, past, every, into);
    tail ??= keyValues;
    if (tail !== null && tail.length >= tailLength) {
      own = own === null ? tail : joined(own, tail);
      tail = null;
    }
    return logits!;
  }

  function joined(before: KeyValues, after: KeyValues): KeyValues {
    const both = before.append(after);
    before.dispose();
    after.dispose();
    return both;
  }

  return {
    next(rows) {
      const logits = held === null ? readPrompts(rows) : readDrawn(rows);
      held = rows;
      return logits;
    },
    dispose() {
      for (const piece of [...common, own, tail]) piece?.dispose();
      [common, own, tail] = [[], null, null];
    },
  };
}

/** Stacks pieces and selects rows. Disposes the pieces early, to avoid three copies in memory. */
function inOrder(pieces: readonly KeyValues[], rows: readonly number[]): KeyValues {
  const [first, ...others] = pieces as [KeyValues, ...KeyValues[]];
  let all: KeyValues;
  try {
    all = first.stack(others);
  } finally {
    for (const piece of pieces) piece.dispose();
  }
  try {
    return all.select(rows);
  } finally {
    all.dispose();
  }
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
