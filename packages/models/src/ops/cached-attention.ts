import * as tf from "@tensorflow/tfjs-core";
import { batchMatMul, batchMatMulTransposedB } from "./mat-mul.ts";
import { tanh } from "./soft-cap.ts";

/** B rows of T tokens, H query heads, G key-value heads (H a multiple of G) of D dimensions each. */
export interface QueryShape {
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
}

/** Keys and values that queries look at together; b is B, or 1 for what all rows share. */
export interface AttendedPiece {
  /** float32 [b·G, P, D]. */
  readonly keys: tf.Tensor3D;
  readonly values: tf.Tensor3D;
  /** float32 [B, T·P], added to the scores: 0 where a token may see another, very negative where not. Null: sees all. */
  readonly mask: tf.Tensor2D | null;
}

/**
 * Attention over pieces, as if their keys stood side by side: query [B·T, H·D], rotated and scaled → [B·T, H·D]. Without
 * gradients.
 *
 * Each piece gives its own weighted mean and the logarithm of what its weights sum to; these are joined at the end, so
 * that no keys are copied and a piece that all rows share is one product for all of them. `tf.softmax` and maxima make
 * both, because `exp` is slow on wasm: the largest weight is exp(max score − logarithm).
 */
export function cachedAttention(
  query: tf.Tensor2D,
  pieces: readonly AttendedPiece[],
  softCap: number | null,
  shape: QueryShape,
): tf.Tensor2D {
  return tf.tidy(() => {
    const queries = byGroup(query, shape);
    const seen = pieces.map((piece) => lookAt(queries, piece, softCap, shape, pieces.length > 1));
    return byToken(joined(seen), shape);
  });
}

interface Seen {
  /** [B·G, H/G·T, D]. */
  readonly mean: tf.Tensor3D;
  /** [B·G, H/G·T, 1]; null where there is nothing to join. */
  readonly logSum: tf.Tensor3D | null;
}

function lookAt(
  queries: tf.Tensor3D,
  { keys, values, mask }: AttendedPiece,
  softCap: number | null,
  shape: QueryShape,
  isJoined: boolean,
): Seen {
  const { batch, length, heads, keyValueHeads } = shape;
  const tokens = keys.shape[1];
  const isShared = keys.shape[0] !== batch * keyValueHeads;
  const rows = isShared ? sharedRows(queries, shape) : queries;
  const products = batchMatMulTransposedB(rows, keys);
  const capped = softCap === null ? products : tf.mul<tf.Tensor3D>(tanh(tf.div(products, softCap)), softCap);
  // Scores of a query head lie side by side for the T tokens of its row, so one mask a row serves all heads.
  const scores =
    mask === null
      ? capped
      : tf.reshape(
          isShared
            ? tf.add(
                tf.reshape(capped, [keyValueHeads, batch, heads / keyValueHeads, length * tokens]),
                tf.reshape(mask, [1, batch, 1, length * tokens]),
              )
            : tf.add(
                tf.reshape(capped, [batch, heads, length * tokens]),
                tf.reshape(mask, [batch, 1, length * tokens]),
              ),
          capped.shape,
        );
  const weights = tf.softmax<tf.Tensor3D>(scores as tf.Tensor3D);
  const mean = batchMatMul(weights, values);
  const logSum = isJoined
    ? tf.sub<tf.Tensor3D>(tf.max(scores, -1, true), tf.log(tf.max(weights, -1, true)))
    : null;
  if (!isShared) return { mean, logSum };
  return { mean: ownRows(mean, shape), logSum: logSum && ownRows(logSum, shape) };
}

function joined(seen: readonly Seen[]): tf.Tensor3D {
  if (seen.length === 1) return seen[0]!.mean;
  const shares = tf.softmax(
    tf.concat(
      seen.map(({ logSum }) => logSum!),
      -1,
    ),
  );
  const parts = tf.split(shares, seen.length, -1);
  return seen
    .map(({ mean }, index) => tf.mul<tf.Tensor3D>(mean, parts[index]!))
    .reduce((a, b) => tf.add(a, b));
}

/** [B·T, H·D] → [B·G, H/G·T, D]. */
function byGroup(x: tf.Tensor2D, { batch, length, heads, keyValueHeads, headDim }: QueryShape): tf.Tensor3D {
  const grouped = [batch * keyValueHeads, (heads / keyValueHeads) * length, headDim] as [
    number,
    number,
    number,
  ];
  if (length === 1) return tf.reshape(x, grouped);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, length, heads, headDim]), [0, 2, 1, 3]), grouped);
}

/** [B·G, H/G·T, D] → [B·T, H·D]. */
function byToken(x: tf.Tensor3D, { batch, length, heads, headDim }: QueryShape): tf.Tensor2D {
  if (length === 1) return tf.reshape(x, [batch, heads * headDim]);
  const perHead = tf.transpose(tf.reshape(x, [batch, heads, length, headDim]), [0, 2, 1, 3]);
  return tf.reshape(perHead, [batch * length, heads * headDim]);
}

/** [B·T, G·D] → [B·G, T, D], as keys and values are kept. */
export function byKeyHead(
  x: tf.Tensor2D,
  { batch, length, keyValueHeads, headDim }: QueryShape,
): tf.Tensor3D {
  const kept = [batch * keyValueHeads, length, headDim] as [number, number, number];
  if (length === 1) return tf.reshape(x, kept);
  return tf.reshape(tf.transpose(tf.reshape(x, [batch, length, keyValueHeads, headDim]), [0, 2, 1, 3]), kept);
}

/** [B·G, R, X] → [G, B·R, X]. */
function sharedRows(x: tf.Tensor3D, { batch, keyValueHeads }: QueryShape): tf.Tensor3D {
  const [, rows, width] = x.shape;
  const perRow = tf.transpose(tf.reshape(x, [batch, keyValueHeads, rows, width]), [1, 0, 2, 3]);
  return tf.reshape(perRow, [keyValueHeads, batch * rows, width]);
}

/** [G, B·R, X] → [B·G, R, X]. */
function ownRows(x: tf.Tensor3D, { batch, keyValueHeads }: QueryShape): tf.Tensor3D {
  const [, all, width] = x.shape;
  const perHead = tf.transpose(tf.reshape(x, [keyValueHeads, batch, all / batch, width]), [1, 0, 2, 3]);
  return tf.reshape(perHead, [batch * keyValueHeads, all / batch, width]);
}
