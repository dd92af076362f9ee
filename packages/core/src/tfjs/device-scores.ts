import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "../errors.ts";
import { partition } from "./log-likelihood.ts";

/** One token whose log-probability is wanted, in one row of logits. */
export interface Pick {
  readonly row: number;
  readonly token: number;
}

export interface RowScores {
  /** log p per pick, in nats, [P]. */
  readonly nats: tf.Tensor1D;
  /** 1 where the pick's logit is the row's largest (ties included), else 0, [P]. */
  readonly isTop: tf.Tensor1D;
  /** Entropy per row, in nats, [N]; null where it was not asked for. */
  readonly entropy: tf.Tensor1D | null;
}

/**
 * Scores of picked tokens, computed where the logits are. N rows, V vocabulary, P picks; logits float32 [N, V].
 *
 * @returns tensors that the caller disposes (or calls inside `tf.tidy`).
 */
export function scoreRows(logits: tf.Tensor2D, picks: readonly Pick[], withEntropy: boolean): RowScores {
  const [nats, isTop, entropy] = tf.tidy(() => {
    const vocabulary = logits.shape[1];
    const rows = tf.tensor1d(
      picks.map(({ row }) => row),
      "int32",
    );
    const flat = tf.tensor1d(
      picks.map(({ row, token }) => row * vocabulary + token),
      "int32",
    );
    const { top, probabilities, logSum } = partition(logits);
    const picked = tf.gather(tf.reshape(logits, [-1]), flat);
    const ofPicks = [
      tf.sub(picked, tf.gather(logSum, rows)),
      tf.cast(tf.greaterEqual(picked, tf.gather(top, rows)), "float32"),
    ] as [tf.Tensor1D, tf.Tensor1D];
    if (!withEntropy) return ofPicks;
    return [...ofPicks, tf.sub(logSum, tf.sum(tf.mul(probabilities, logits), 1))] as tf.Tensor1D[];
  }) as [tf.Tensor1D, tf.Tensor1D, tf.Tensor1D?];
  return { nats, isTop, entropy: entropy ?? null };
}

export interface PicksOptions {
  /** Scored positions. */
  readonly rows: number;
  /** `row` is a scored position. */
  readonly picks: readonly Pick[];
  readonly withEntropy: boolean;
  /** Rows of logits that may exist at once. */
  readonly maxRows: number;
}

export interface PickedScores {
  /** One per pick, in their order. */
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  /** One per row; empty where not asked for. */
  readonly entropyNats: readonly number[];
}

/**
 * Scores of picked tokens, in chunks of rows so that no matrix of logits is larger than memory was given; one download.
 *
 * @param logitsOf logits [to − from, V] of the scored positions from `from` up to `to`; disposed here
 */
export async function scorePicks(
  logitsOf: (from: number, to: number) => tf.Tensor2D,
  { rows, picks, withEntropy, maxRows }: PicksOptions,
): Promise<PickedScores> {
  const chunks = Array.from({ length: Math.ceil(rows / maxRows) }, (_, chunk) => {
    const [from, to] = [chunk * maxRows, Math.min(rows, (chunk + 1) * maxRows)];
    return { from, to, members: picks.flatMap(({ row }, index) => (row >= from && row < to ? [index] : [])) };
  });
  const scoresOf = ({ from, to, members }: (typeof chunks)[number]): tf.Tensor1D[] =>
    tf.tidy(() => {
      const own = members.map((index) => ({ ...picks[index]!, row: picks[index]!.row - from }));
      const { nats, isTop, entropy } = scoreRows(logitsOf(from, to), own, withEntropy);
      return entropy ? [nats, isTop, entropy] : [nats, isTop];
    });
  const values = await download(tf.tidy(() => tf.concat(chunks.flatMap(scoresOf))));
  const nats: number[] = [];
  const isTop: boolean[] = [];
  const entropyNats: number[] = [];
  let offset = 0;
  for (const { from, to, members } of chunks) {
    for (const index of members) nats[index] = values[offset++]!;
    for (const index of members) isTop[index] = values[offset++]! === 1;
    if (withEntropy) for (let row = from; row < to; row++) entropyNats.push(values[offset++]!);
  }
  return { nats, isTop, entropyNats };
}

/** Downloads and disposes. */
export async function download(tensor: tf.Tensor): Promise<Float32Array> {
  try {
    return (await tensor.data()) as Float32Array;
  } finally {
    tensor.dispose();
  }
}

/** @throws PeriodicEvalError `model`: a diverged model would otherwise be scored as wrong everywhere. */
export function refuseNaN(nats: readonly number[]): void {
  if (!nats.some(Number.isNaN)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "logits",
    got: "NaN",
    expected: "numbers",
    fix: "The model has diverged: look at the loss, lower the learning rate, clip gradients.",
  });
}
