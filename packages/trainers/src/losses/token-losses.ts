import * as tf from "@tensorflow/tfjs-core";
import { nextTurn } from "@periodic-eval/core/model";
import {
  inEvaluation,
  type CausalLM,
  type NamedRandom,
  type TrainableLM,
  targetLosses,
} from "@periodic-eval/tfjs";

/** The input of a loss: ids int32 [B, T], right-padded; `targets` int32 [N], predicted at `rows` int32 [N] of B·T. */
export interface ScoredTokens {
  readonly ids: tf.Tensor2D;
  readonly rows: tf.Tensor1D;
  readonly targets: tf.Tensor1D;
  /** As in `TrainableLM.trainingLogits`; null or omitted if every row is one document. */
  readonly documentStarts?: Int32Array | null;
}

/**
 * Returns the negative log-likelihood of each target, in nats, [N], differentiable in the model's trainable variables. Uses
 * the model's `trainingLosses` if it has them, else its logits. The caller disposes the result.
 */
export function tokenLosses(
  model: TrainableLM,
  { ids, rows, targets, documentStarts }: ScoredTokens,
  random: NamedRandom,
): tf.Tensor1D {
  const documents: readonly [Int32Array?] = documentStarts ? [documentStarts] : [];
  return (
    model.trainingLosses?.(ids, rows, targets, random, ...documents) ??
    crossEntropy(model.trainingLogits(ids, rows, random, ...documents), targets)
  );
}

/** Any model; methods of a trainable one are used if present. */
type ReadLM = CausalLM & Partial<Pick<TrainableLM, "trainingLogits" | "trainingLosses">>;

/**
 * Like `tokenLosses`, in evaluation mode and without gradients. A model with `trainingLosses` holds no more logits at once
 * than in training. `documentStarts` require a model that `takesDocuments`.
 */
export function evaluatedLosses(lm: ReadLM, tokens: ScoredTokens): tf.Tensor1D {
  const { ids, rows, targets, documentStarts } = tokens;
  return inEvaluation(lm, () => {
    const documents: readonly [Int32Array?] = documentStarts ? [documentStarts] : [];
    const losses = lm.trainingLosses?.(ids, rows, targets, refuseToDraw, ...documents);
    return losses ?? tf.tidy(() => crossEntropy(evaluatedLogits(lm, tokens), targets));
  });
}

/** Returns logits [N, V] in evaluation mode. Only the training pass knows documents; in evaluation mode it draws nothing. */
export function evaluatedLogits(
  lm: ReadLM,
  { ids, rows, documentStarts }: Omit<ScoredTokens, "targets">,
): tf.Tensor2D {
  if (documentStarts) return lm.trainingLogits!(ids, rows, refuseToDraw, documentStarts);
  if (lm.logitsAt) return lm.logitsAt(ids, rows);
  return tf.gather(tf.reshape(lm.logits(ids), [ids.size, lm.vocabSize]), rows);
}

function refuseToDraw(place: string): never {
  throw new Error(`${place} draws at random in evaluation mode`);
}

/** Returns Σ over N rows of `crossEntropy`, once differentiable in `logits`. */
export const crossEntropySum = (logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Scalar =>
  tf.tidy(() => total(crossEntropy(logits, targets)));

/** Returns Σ of N losses, differentiable. */
export function total(losses: tf.Tensor1D): tf.Scalar {
  const count = losses.size;
  const sum = tf.customGrad<tf.Scalar>((x) => ({
    value: tf.sum<tf.Scalar>(x as tf.Tensor),
    gradFunc: (above: tf.Tensor) => tf.mul(tf.ones([count]), above),
  }));
  return sum(losses);
}

/**
 * Returns the negative log-likelihood of the target of each row, in nats. N scored positions, V vocabulary. The gradient is
 * `softmax − one-hot` and is only computed when one is taken.
 *
 * @param logits float32 [N, V], N ≥ 1.
 * @param targets int32 [N], each in [0, V); not checked: an id outside gives an unspecified value.
 * @returns [N], once differentiable in `logits`. The caller disposes it. NaN or Inf in, NaN or Inf out.
 */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  if (!tf.engine().isTapeOn()) return tf.tidy(() => targetLosses(logits, targets).losses);
  const loss = tf.customGrad((x, save) => {
    const { losses, gradient } = targetLosses(x as tf.Tensor2D, targets);
    (save as (tensors: tf.Tensor[]) => void)([gradient()]);
    return {
      value: losses,
      gradFunc: (dy: tf.Tensor, [ofLogits]: tf.Tensor[]) => tf.mul(ofLogits!, tf.reshape(dy, [-1, 1])),
    };
  });
  return loss(logits);
}

/**
 * Returns Σ log p of the targets of each sequence, in nats. S sequences, N scored positions in the order of their sequences.
 *
 * @param losses float32 [N], the negative log-likelihood of each target.
 * @param counts [S], scored positions of each sequence, each ≥ 1; Σ = N.
 * @returns float32 [S], once differentiable in `losses`. The caller disposes it. NaN or Inf in, NaN or Inf out.
 */
export function sequenceLogProbs(losses: tf.Tensor1D, counts: readonly number[]): tf.Tensor1D {
  const logProbs = tf.customGrad<tf.Tensor1D>((x) => ({
    value: tf.tidy(() => tf.neg(sumOfEach(x as tf.Tensor1D, counts))),
    gradFunc: (above: tf.Tensor) => {
      const sequence = counts.flatMap((count, i) => Array<number>(count).fill(i));
      return tf.neg(tf.gather(above, tf.tensor1d(sequence, "int32")));
    },
  }));
  return logProbs(losses);
}

/** [N] → [S]. Scatters each sequence to its own row: colliding indexes would be summed in an order that backends choose. */
function sumOfEach(values: tf.Tensor1D, counts: readonly number[]): tf.Tensor1D {
  const places = counts.flatMap((count, i) => Array.from({ length: count }, (_, j) => [i, j]));
  const index = tf.tensor2d(places, [places.length, 2], "int32");
  return tf.sum(tf.scatterND(index, values, [counts.length, Math.max(...counts)]), 1);
}

/** Sums over the scored items of a batch, and the number of items. */
interface BatchSums<Name extends string> {
  readonly sums: Readonly<Record<Name, tf.Scalar>>;
  readonly count: number;
}

/**
 * Returns means over all batches together, by name. Runs batches one after the other and adds up in double precision.
 *
 * @param sumsOf Computes one batch. All tensors that it creates are disposed here.
 */
export async function meansOver<B, Name extends string>(
  batches: Iterable<B>,
  sumsOf: (batch: B) => BatchSums<Name>,
): Promise<Readonly<Record<Name, number>>> {
  const totals = new Map<Name, number>();
  let count = 0;
  for (const batch of batches) {
    let names: Name[] = [];
    const stacked = tf.tidy(() => {
      const { sums, count: ofBatch } = sumsOf(batch);
      count += ofBatch;
      names = Object.keys(sums) as Name[];
      return tf.stack(names.map((name) => sums[name]));
    });
    try {
      const values = await stacked.data<"float32">();
      for (const [i, name] of names.entries()) totals.set(name, (totals.get(name) ?? 0) + values[i]!);
    } finally {
      stacked.dispose();
    }
    // Yields to the event loop, so that an abort and background grading get through during a long validation.
    await nextTurn();
  }
  return Object.fromEntries([...totals].map(([name, sum]) => [name, sum / count])) as Record<Name, number>;
}
