import type * as tf from "@tensorflow/tfjs-core";

/**
 * Reading tokens with a cache of keys and values. Packed scoring, shared prefixes and generation use it. B rows, T tokens, N
 * requested states, H width of the model's states, V vocabulary.
 */
export interface Incremental {
  /** Longest sequence in tokens for which reading in pieces gives the same states as reading the whole sequence. */
  readonly reach: number;
  /** Bytes of the keys and values of one token. */
  readonly tokenBytes: number;
  /** Reads a block of tokens after the tokens of `options.past`. */
  extend(block: TokenBlock, options: ExtendOptions): Extended;
  /** Applies the head: states float32 [N, H] of `extend` → logits float32 [N, V]. The caller disposes both. */
  logitsOf(states: tf.Tensor2D): tf.Tensor2D;
}

/**
 * Tokens with their positions, B rows of T. A row is a tree of segments: a common beginning of several sequences is one segment
 * that is read once, and each sequence continues in segments of its own. Segments are numbered in depth-first order, so a
 * token's own segment and all segments after it form one range. A token attends to itself and to every token of its row and of
 * the past whose position is lower and whose range contains its segment.
 */
export interface TokenBlock {
  readonly batch: number;
  readonly length: number;
  /** Token ids, [B·T], row-major. */
  readonly ids: Int32Array;
  /** Position of each token in its sequence, from 0, [B·T]. */
  readonly positions: Int32Array;
  /** Segment of each token, from 0, [B·T]; −1 for padding, to which nothing attends. */
  readonly segments: Int32Array;
  /** The last segment of each token's range, [B·T]; `everySegment` if all later blocks continue from the token. */
  readonly lastSegments: Int32Array;
}

export interface ExtendOptions {
  /** Tokens read earlier, in any number of pieces. A piece has as many rows as the block, or one row that all rows continue. */
  readonly past?: readonly KeyValues[];
  /**
   * Keys and values to which the block's are appended in place. It has as many rows as the block and follows the pieces of
   * `past`. `Extended.keyValues` is then null.
   */
  readonly into?: KeyValues | null;
  /** Indices into the flattened B·T whose states to return. */
  readonly rows: readonly number[];
  /** Whether to return the block's keys and values. Default: false. */
  readonly keep?: boolean;
}

export interface Extended {
  /** The input of `logitsOf`: float32 [N, H] with N = `rows.length`. The caller disposes it. */
  readonly states: tf.Tensor2D;
  /** The block's keys and values, if `keep` is set; else null. The caller disposes them. */
  readonly keyValues: KeyValues | null;
}

/**
 * Cached keys and values of tokens. The methods use up this cache and those given to them: they dispose these part by part, so that
 * memory does not hold everything twice. The caller disposes the cache that they return.
 */
export interface KeyValues {
  readonly batch: number;
  /** Tokens per row, including padding. */
  readonly length: number;
  /** Returns the given rows, in the given order. */
  select(rows: readonly number[]): KeyValues;
  /** Returns rows with the tokens of `later` after the tokens of this; both have equally many rows. */
  append(later: KeyValues): KeyValues;
  /** Returns the rows of this and, after them, the rows of others, padded to the longest. */
  stack(below: readonly KeyValues[]): KeyValues;
  dispose(): void;
}

/** The last segment of tokens from which all later blocks continue. */
export const everySegment = 2 ** 31 - 1;

/** Returns a block with one sequence per row, padded on the right. The sequences continue from position `start`. */
export function blockOf(rows: readonly (readonly number[])[], start: number): TokenBlock {
  const [batch, length] = [rows.length, Math.max(...rows.map((ids) => ids.length))];
  const cells = batch * length;
  const block = {
    batch,
    length,
    ids: new Int32Array(cells),
    positions: Int32Array.from({ length: cells }, (_, cell) => start + (cell % length)),
    segments: new Int32Array(cells).fill(-1),
    lastSegments: new Int32Array(cells).fill(-1),
  };
  rows.forEach((ids, row) => {
    block.ids.set(ids, row * length);
    block.segments.fill(0, row * length, row * length + ids.length);
    block.lastSegments.fill(everySegment, row * length, row * length + ids.length);
  });
  return block;
}
