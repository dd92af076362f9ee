import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";
import { byHead, byToken, inGroups, outOfGroups, type AttentionShape } from "./attention.ts";
import { batchMatMul } from "./mat-mul.ts";
import { tanh } from "./arithmetic.ts";

/** A piece of cached keys and values. P is its number of tokens; b is B, or 1 if all rows share the piece. */
export interface AttendedPiece {
  /** float32 [b·G, D, P]: stored transposed, so that no step transposes them. */
  readonly keys: tf.Tensor3D;
  /** float32 [b·G, P, D]. */
  readonly values: tf.Tensor3D;
  /** float32 [B, T·P], added to the scores: 0 if a token attends to another, else very negative. Null: all zeros. */
  readonly mask: tf.Tensor2D | null;
}

/**
 * Computes attention over pieces as if their keys were concatenated: query [B·T, H·D], rotated and scaled → [B·T, H·D].
 * Without gradients.
 *
 * Each piece yields its own weighted mean and the logarithm of the sum of its exponentials, and these are combined at the
 * end. So no keys are copied, and a shared piece takes one product for all rows. Both come from `tf.softmax` and maxima,
 * because `exp` is slow on wasm: the largest weight is exp(max score − logarithm).
 */
export function cachedAttention(
  query: tf.Tensor2D,
  pieces: readonly AttendedPiece[],
  softCap: number | null,
  shape: AttentionShape,
): tf.Tensor2D {
  if (softCap === null && hasNativeKernels()) return nativeAttention(query, pieces, shape);
  return tf.tidy(() => {
    const queries = inGroups(byHead(query, shape, shape.heads), shape);
    const parts = pieces.map((piece) => attendTo(queries, piece, softCap, shape, pieces.length > 1));
    return byToken(outOfGroups(combined(parts), shape), shape, shape.heads);
  });
}

/** Computes the same with one kernel. */
function nativeAttention(
  query: tf.Tensor2D,
  pieces: readonly AttendedPiece[],
  { heads, keyValueHeads }: AttentionShape,
): tf.Tensor2D {
  return tf.tidy(() => {
    const all = [
      ...pieces.map(({ keys }) => keys),
      ...pieces.map(({ values }) => values),
      ...pieces.map(({ mask }) => mask ?? tf.tensor1d([], "float32")),
    ];
    const parameters = { heads, keyValueHeads, pieces: pieces.length };
    return runNative("PeriodicAttend", [query, ...all], parameters) as tf.Tensor2D;
  });
}

interface PieceAttention {
  /** [B·G, H/G·T, D]. */
  readonly mean: tf.Tensor3D;
  /** [B·G, H/G·T, 1]; null for a single piece. */
  readonly logSum: tf.Tensor3D | null;
}

function attendTo(
  queries: tf.Tensor3D,
  { keys, values, mask }: AttendedPiece,
  softCap: number | null,
  shape: AttentionShape,
  isJoined: boolean,
): PieceAttention {
  const { batch, length, heads, keyValueHeads } = shape;
  const tokens = keys.shape[2];
  const isShared = keys.shape[0] !== batch * keyValueHeads;
  const rows = isShared ? sharedRows(queries, shape) : queries;
  const products = batchMatMul(rows, keys);
  const capped = softCap === null ? products : tf.mul<tf.Tensor3D>(tanh(tf.div(products, softCap)), softCap);
  // The scores of a query head are adjacent for the T tokens of its row, so one mask per row serves all heads.
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

function combined(pieces: readonly PieceAttention[]): tf.Tensor3D {
  if (pieces.length === 1) return pieces[0]!.mean;
  const shares = tf.softmax(
    tf.concat(
      pieces.map(({ logSum }) => logSum!),
      -1,
    ),
  );
  const parts = tf.split(shares, pieces.length, -1);
  return pieces
    .map(({ mean }, index) => tf.mul<tf.Tensor3D>(mean, parts[index]!))
    .reduce((a, b) => tf.add(a, b));
}

/** [B·G, R, X] → [G, B·R, X]. */
function sharedRows(x: tf.Tensor3D, { batch, keyValueHeads }: AttentionShape): tf.Tensor3D {
  const [, rows, width] = x.shape;
  const perRow = tf.transpose(tf.reshape(x, [batch, keyValueHeads, rows, width]), [1, 0, 2, 3]);
  return tf.reshape(perRow, [keyValueHeads, batch * rows, width]);
}

/** [G, B·R, X] → [B·G, R, X]. */
function ownRows(x: tf.Tensor3D, { batch, keyValueHeads }: AttentionShape): tf.Tensor3D {
  const [, all, width] = x.shape;
  const perHead = tf.transpose(tf.reshape(x, [keyValueHeads, batch, all / batch, width]), [1, 0, 2, 3]);
  return tf.reshape(perHead, [batch * keyValueHeads, all / batch, width]);
}
