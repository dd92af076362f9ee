import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { incrementalOf, logitsAtPositions } from "../causal-lm/forward.ts";
import { everySegment, type Incremental, type KeyValues, type TokenBlock } from "../causal-lm/incremental.ts";
import { readBlock, readPrompts } from "./read-prompts.ts";

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
  let own: KeyValues | null = null;
  let tail: KeyValues | null = null;
  let held: readonly Growing[] | null = null;

  function readFirst(rows: readonly Growing[]): tf.Tensor2D {
    const prompts = rows.map(({ prompt }) => prompt);
    const { logits, ...caches } = readPrompts(lm, incremental, prompts, maxBatchTokens);
    ({ common, own } = caches);
    return logits;
  }

  function readDrawn(rows: readonly Growing[]): tf.Tensor2D {
    if (rows.length < held!.length) {
      const kept = new Set(rows);
      const left = held!.flatMap((row, index) => (kept.has(row) ? [index] : []));
      own &&= own.select(left);
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
    const isSmall = tail === null && own !== null && own.batch * own.length < copiedTokens;
    const into = isSmall ? own : tail;
    const past = [...common, own].filter((piece) => piece !== null && piece !== into) as KeyValues[];
    const every = rows.map((_, row) => row);
    const { logits, keyValues } = readBlock(lm, incremental, block, { past, rows: every, into });
    tail ??= keyValues;
    if (tail !== null && tail.length >= tailLength) {
      own = own === null ? tail : own.append(tail);
      tail = null;
    }
    return logits!;
  }

  return {
    next(rows) {
      const logits = held === null ? readFirst(rows) : readDrawn(rows);
      held = rows;
      return logits;
    },
    dispose() {
      for (const piece of [...common, own, tail]) piece?.dispose();
      [common, own, tail] = [[], null, null];
    },
  };
}
