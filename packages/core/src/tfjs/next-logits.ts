import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM, Incremental, KeyValues, TokenBlock } from "./causal-lm.ts";
import { checkIds, incrementalOf, inEvaluation, logitsAtPositions } from "./forward.ts";
import { batchByLength } from "./batches.ts";
import { sharedLength } from "./branches.ts";
import { shortestPrefix } from "./packing.ts";
import { blockOf, trunk } from "./token-block.ts";

/** A sequence that grows token by token. */
export interface Growing {
  readonly prompt: readonly number[];
  /** Drawn so far. */
  readonly ids: readonly number[];
}

/** Reads growing sequences, one token further a call. */
export interface NextLogits {
  /**
   * Logits [rows, V] of the token after each sequence; the caller's. Sequences that are over may be missing from the
   * second call on; the others come in the same order, each one token longer.
   */
  next(rows: readonly Growing[]): tf.Tensor2D;
  dispose(): void;
}

/**
 * With a cache of keys and values as far as the model reads incrementally, reading every sequence anew beyond.
 *
 * @param maxBatchTokens tokens of prompts that are read at once, padding included, where there is a cache
 */
export function nextLogits(lm: CausalLM, maxBatchTokens: number): NextLogits {
  const incremental = incrementalOf(lm);
  if (incremental === null) return { next: (rows) => readAnew(lm, rows), dispose() {} };
  const near = cached(lm, incremental, maxBatchTokens);
  const isNear = ({ prompt, ids }: Growing) => prompt.length + ids.length <= incremental.reach;
  return {
    next(rows) {
      const within = rows.filter(isNear);
      if (within.length === rows.length) return near.next(rows);
      // None grows shorter.
      if (within.length === 0) near.dispose();
      const beyond = rows.filter((row) => !isNear(row));
      const parts: tf.Tensor2D[] = [];
      try {
        if (within.length > 0) parts.push(near.next(within));
        parts.push(readAnew(lm, beyond));
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

function readAnew(lm: CausalLM, rows: readonly Growing[]): tf.Tensor2D {
  const sequences = rows.map(({ prompt, ids }) => [...prompt, ...ids]);
  const last = sequences.map((ids, sequence) => ({ sequence, at: ids.length - 1 }));
  return logitsAtPositions(lm, sequences, last);
}

/** A cache of this many tokens is copied to put one more behind it; a larger one gets a tail. */
const copiedTokens = 256;
/** Tokens of the tail before it is joined to what stands before it. */
const tailLength = 32;

function cached(lm: CausalLM, { extend, logitsOf }: Incremental, maxBatchTokens: number): NextLogits {
  /** One row, which all sequences follow. */
  let common: KeyValues[] = [];
  /** A row a sequence: what of the prompt is its own, and the tokens drawn. */
  let own: KeyValues | null = null;
  let tail: KeyValues | null = null;
  let held: readonly Growing[] | null = null;

  /** The logits after the last of `rows`, and the block's keys and values. */
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
    // Its last token is left to each prompt: the logits after it are wanted.
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

/** These rows of pieces that stand below one another. Disposes the pieces, so that they are not held three times. */
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

/** Each prompt once, and for every one given which it is. */
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
