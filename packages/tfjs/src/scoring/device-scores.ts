import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { partition } from "../causal-lm/target-losses.ts";

/** A token whose log-probability is requested, in one row of logits. */
export interface Pick {
  readonly row: number;
  readonly token: number;
}

/**
 * Scores picked tokens on the device of the logits. N rows, V vocabulary, P picks; logits float32 [N, V]. Must run inside
 * `tf.tidy`.
 *
 * @returns log p of each pick in nats, [P]; whether its logit is the largest of its row (or tied), 1 or 0, [P]; and, if requested,
 *   the entropy of each row in nats, [N], and the token with the largest logit in each pick's row, [P].
 */
function scoreRows(
  logits: tf.Tensor2D,
  picks: readonly Pick[],
  { withEntropy, withGreedyIds }: Omit<PicksOptions, "rows" | "picks" | "maxRows">,
): tf.Tensor1D[] {
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
  const nats = tf.sub<tf.Tensor1D>(picked, tf.gather(logSum, rows));
  const isTop = tf.cast<tf.Tensor1D>(tf.greaterEqual(picked, tf.gather(top, rows)), "float32");
  const scores = [nats, isTop];
  if (withEntropy) scores.push(tf.sub<tf.Tensor1D>(logSum, tf.sum(tf.mul(probabilities, logits), 1)));
  // float32 holds every token id exactly.
  if (withGreedyIds) scores.push(tf.gather(tf.cast<tf.Tensor1D>(tf.argMax(logits, 1), "float32"), rows));
  return scores;
}

export interface PicksOptions {
  readonly rows: number;
  /** Their `row` is the index of a scored position. */
  readonly picks: readonly Pick[];
  readonly withEntropy: boolean;
  readonly withGreedyIds: boolean;
  /** Largest number of rows of logits at once. */
  readonly maxRows: number;
}

/** The scores of a batch or of one sequence, in order. */
export interface Scores {
  /** log p of each pick, in nats. */
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  /** Entropy per scored position, in nats; empty if not requested. */
  readonly entropyNats: readonly number[];
  /** The most likely token in the row of each pick; empty if not requested. */
  readonly greedyIds: readonly number[];
}

/**
 * Scores picked tokens in chunks of at most `maxRows` rows of logits, with one download.
 *
 * @param logitsOf Returns the logits [to − from, V] of the scored positions from `from` up to `to`. This function disposes them.
 */
export async function scorePicks(
  logitsOf: (from: number, to: number) => tf.Tensor2D,
  { rows, picks, maxRows, ...withWhat }: PicksOptions,
): Promise<Scores> {
  const chunks = Array.from({ length: Math.ceil(rows / maxRows) }, (_, chunk) => {
    const [from, to] = [chunk * maxRows, Math.min(rows, (chunk + 1) * maxRows)];
    return { from, to, members: picks.flatMap(({ row }, index) => (row >= from && row < to ? [index] : [])) };
  });
  const scoresOf = ({ from, to, members }: (typeof chunks)[number]): tf.Tensor1D[] =>
    tf.tidy(() => {
      const ofChunk = members.map((index) => ({ ...picks[index]!, row: picks[index]!.row - from }));
      return scoreRows(logitsOf(from, to), ofChunk, withWhat);
    });
  const values = await download(tf.tidy(() => tf.concat(chunks.flatMap(scoresOf))));
  const nats: number[] = [];
  const isTop: boolean[] = [];
  const entropyNats: number[] = [];
  const greedyIds: number[] = [];
  let offset = 0;
  for (const { from, to, members } of chunks) {
    for (const index of members) nats[index] = values[offset++]!;
    for (const index of members) isTop[index] = values[offset++]! === 1;
    if (withWhat.withEntropy) for (let row = from; row < to; row++) entropyNats.push(values[offset++]!);
    if (withWhat.withGreedyIds) for (const index of members) greedyIds[index] = values[offset++]!;
  }
  return { nats, isTop, entropyNats, greedyIds };
}

/** Returns the values of a tensor and disposes it. */
export async function download(tensor: tf.Tensor): Promise<Float32Array> {
  try {
    return (await tensor.data()) as Float32Array;
  } finally {
    tensor.dispose();
  }
}

/**
 * Checks that scores are numbers, because a diverged model would otherwise count as wrong everywhere.
 *
 * @throws PeriodicEvalError `model` for NaN.
 */
export function refuseNaN(nats: readonly number[]): void {
  if (!nats.some(Number.isNaN)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "logits",
    got: "NaN",
    expected: "numbers",
    fix: "The model has diverged: check the loss, lower the learning rate or clip gradients.",
  });
}
