import * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { clipFactor, crossEntropySum, type GradientNorm, type Optimizer } from "@periodic-eval/trainers";
import type { Row } from "./token-rows.ts";

/** The result of one optimizer step. */
export interface StepResult {
  /** Mean negative log-likelihood of the trained tokens, in nats. */
  readonly loss: number;
  /** Share of trained tokens that the model gave the highest probability. */
  readonly accuracy: number;
  /** Number of input tokens, including padding. */
  readonly tokens: number;
}

/** Takes one AdamW step on the mean loss over the trained tokens of all rows, with gradients clipped to a norm of 1. */
export async function trainStep(
  model: TrainableLM,
  { optimizer, gradientNorm }: { readonly optimizer: Optimizer; readonly gradientNorm: GradientNorm },
  rows: readonly Row[],
  learningRate: number,
): Promise<StepResult> {
  const { ids, shape, scored, targets } = collate(rows);
  const inputs = {
    ids: tf.tensor2d(ids, shape, "int32"),
    scored: tf.tensor1d(scored, "int32"),
    targets: tf.tensor1d(targets, "int32"),
  };
  let hits: tf.Tensor | undefined;
  const { value, grads } = tf.variableGrads(() => {
    const logits = model.trainingLogits(inputs.ids, inputs.scored, noDropout);
    hits = tf.keep(tf.mean(tf.cast(tf.equal(tf.argMax(logits, 1), inputs.targets), "float32")));
    return crossEntropySum(logits, inputs.targets);
  }, [...model.trainables()]);
  try {
    const gradients = Object.values(grads);
    const norm = (await gradientNorm.of(gradients)) ?? 0;
    const scale = 1 / targets.length;
    optimizer.apply(grads, learningRate, scale * clipFactor(norm * scale, 1));
    const [sum] = await value.data();
    const [accuracy] = await (hits as tf.Tensor).data();
    return { loss: (sum as number) * scale, accuracy: accuracy as number, tokens: ids.length };
  } finally {
    tf.dispose([value, grads, inputs]);
    hits?.dispose();
  }
}

const noDropout = (name: string): never => {
  throw new Error(`the model seededDraw random numbers for ${name}, but pretraining uses no dropout`);
};

/** Returns right-padded ids [B, T], the N trained positions in the flattened [B·T], and the N target tokens after them. */
function collate(rows: readonly Row[]): {
  ids: Int32Array;
  shape: [number, number];
  scored: Int32Array;
  targets: Int32Array;
} {
  const length = Math.max(...rows.map(({ ids }) => ids.length)) - 1;
  const ids = new Int32Array(rows.length * length);
  const scored: number[] = [];
  const targets: number[] = [];
  for (const [b, row] of rows.entries()) {
    ids.set(row.ids.slice(0, length), b * length);
    for (let t = 1; t < row.ids.length; t += 1) {
      if (row.lossMask[t] !== true) continue;
      scored.push(b * length + t - 1);
      targets.push(row.ids[t] as number);
    }
  }
  return {
    ids,
    shape: [rows.length, length],
    scored: Int32Array.from(scored),
    targets: Int32Array.from(targets),
  };
}
