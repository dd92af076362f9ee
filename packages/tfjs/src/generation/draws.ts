import * as tf from "@tensorflow/tfjs-core";
import { drawToken, type Drawn, type Writing } from "@periodic-eval/tokenizers";
import { download } from "../scoring/device-scores.ts";

/** Draws one token per row and disposes the logits [rows, V]. */
export type Draw = (logits: tf.Tensor2D, rows: readonly Writing[]) => Promise<readonly Drawn[]>;

/** Takes the most likely token; the first id of a tie. */
export const mostLikely: Draw = async (logits) => {
  const [rows] = logits.shape;
  const scores = usingUp(logits, () => {
    // The log of the largest probability is the log p of the most likely token.
    const nats = tf.log(tf.max(tf.softmax(logits, 1), 1));
    // float32 represents ids exactly up to 2^24, more than any vocabulary.
    return tf.concat([tf.cast(tf.argMax(logits, 1), "float32"), nats]);
  });
  const values = await download(scores);
  return Array.from({ length: rows }, (_, row) => ({ token: values[row]!, nats: values[rows + row]! }));
};

/** Samples with each row's settings and random stream. */
export const drawFromEach: Draw = async (logits, rows) => {
  if (tf.getKernel(drawKernel, tf.getBackend()) !== undefined) return drawOnBackend(logits, rows);
  const vocabulary = logits.shape[1];
  const values = await download(logits);
  return rows.map(({ sampling, random }, row) =>
    drawToken(values.subarray(row * vocabulary, (row + 1) * vocabulary), sampling, random),
  );
};

/**
 * The kernel with which a backend draws a token per row. Inputs: `logits` float32 [N, V]; `settings` int32 [N, 8], the bits of four
 * doubles: temperature, a random number in [0, 1), top-k (Infinity without) and top-p. Result int32 [N, 5]: the token, and the bits of
 * two doubles, its logit minus the largest, and Σ exp(logit − largest). All three have the bits of `drawToken` for logits without NaN,
 * +Infinity and denormal numbers. For a row with NaN or +Infinity the sum is NaN, and the token means nothing. `@periodic-eval/kernels`
 * registers it.
 */
export const drawKernel = "PeriodicEvalDraw";

async function drawOnBackend(logits: tf.Tensor2D, rows: readonly Writing[]): Promise<readonly Drawn[]> {
  const settings = Float64Array.from(
    rows.flatMap(({ sampling: { temperature, topK = Infinity, topP = 1 }, random }) => {
      return [temperature, random(), topK, topP];
    }),
  );
  const draws = usingUp(logits, () => {
    const bits = tf.tensor2d(new Int32Array(settings.buffer), [rows.length, 8], "int32");
    return tf.engine().runKernel<tf.Tensor>(drawKernel, { logits, settings: bits });
  });
  const values = Int32Array.from(await download(draws));
  return rows.map((_, row) => {
    const draw = values.slice(5 * row, 5 * row + 5);
    const [belowTop, partition] = new Float64Array(draw.slice(1).buffer) as unknown as [number, number];
    return { token: draw[0]!, nats: belowTop - Math.log(partition) };
  });
}

/** Runs `compute` in a `tf.tidy`, and disposes the tensor that it reads, also if it throws. */
function usingUp(read: tf.Tensor, compute: () => tf.Tensor): tf.Tensor {
  try {
    return tf.tidy(compute);
  } finally {
    read.dispose();
  }
}
