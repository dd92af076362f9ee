import * as tf from "@tensorflow/tfjs-core";
import { targetLosses, type TargetLosses } from "@periodic-eval/tfjs";
import { hasNativeKernels, runNative } from "./native.ts";
import { chunkBytes, chunksOf, part, rowsIn, type Chunk } from "./select.ts";
import { differentiable, isDifferentiated, isWanted } from "./differentiable.ts";
import { matMulTransposedA, timesTransposed } from "./mat-mul.ts";
import { tanh, tanhSlope } from "./arithmetic.ts";

export interface LossHead {
  /** [V, D] if tied to the embedding, else [D, V]. */
  readonly weight: tf.Tensor2D;
  readonly isTied: boolean;
  /** Logits x become cap · tanh(x / cap). Null: no cap. */
  readonly softCap: number | null;
}

/**
 * Computes the head and the loss together: x [N, D], targets int32 [N] → the negative log-likelihood of each target in
 * nats, [N]. Only as many rows of logits exist at a time as fit into `bytes`. For a frozen head the gradient of x is
 * computed in the forward pass and nothing else is kept. For a trained head softmax − one-hot is kept if it is one chunk,
 * else computed again.
 */
export function headLoss(
  x: tf.Tensor2D,
  head: LossHead,
  targets: tf.Tensor1D,
  bytes = chunkBytes,
): tf.Tensor1D {
  const vocabulary = head.weight.shape[head.isTied ? 0 : 1];
  const chunks = chunksOf(x.shape[0], rowsIn(bytes, vocabulary));
  const isTaken = isDifferentiated();
  const isTrained = isTaken && isWanted(head.weight);
  const isXWanted = isTaken && isWanted(x);
  return differentiable([x, head.weight], (save) => {
    const isSingle = chunks.length === 1;
    const through = productsOf(head, { logits: true, states: isXWanted && !isTrained });
    const chunkResults = chunks.map(([from, size]) =>
      tf.tidy((): tf.Tensor[] => {
        const { losses, gradient } = lossesOfRows(part(x, from, size), through, part(targets, from, size));
        if (isTrained) return isSingle ? [losses, gradient()] : [losses];
        return isXWanted ? [losses, through.states(gradient())] : [losses];
      }),
    );
    const together = (at: number) =>
      isSingle ? chunkResults[0]![at]! : tf.concat(chunkResults.map((each) => each[at]!));
    const hasMore = chunkResults[0]!.length > 1;
    save([head.weight, targets, ...(isTrained ? [x] : []), ...(hasMore ? [together(1)] : [])]);
    return {
      value: together(0) as tf.Tensor1D,
      backward(above, [weight, targets, ...rest]) {
        const weights = tf.reshape(above, [-1, 1]);
        if (!isTrained) return [tf.mul(rest[0]!, weights), null];
        const [x, ofLogits] = rest as [tf.Tensor2D, tf.Tensor2D | undefined];
        const again = { ...head, weight: weight as tf.Tensor2D };
        return trainedGradients(x, again, targets as tf.Tensor1D, { weights, ofLogits, chunks });
      },
    };
  });
}

interface TrainedParts {
  /** [N, 1]. */
  readonly weights: tf.Tensor;
  /** The gradient of the sum of the losses in the logits, if there is one chunk. */
  readonly ofLogits: tf.Tensor2D | undefined;
  readonly chunks: readonly Chunk[];
}

function trainedGradients(
  x: tf.Tensor2D,
  head: LossHead,
  targets: tf.Tensor1D,
  { weights, ofLogits, chunks }: TrainedParts,
): [ofX: tf.Tensor, ofWeight: tf.Tensor] {
  const ofX: tf.Tensor2D[] = [];
  const through = productsOf(head, { logits: ofLogits === undefined, states: true });
  let ofWeight: tf.Tensor2D | null = null;
  for (const [from, size] of chunks) {
    const before: tf.Tensor2D | null = ofWeight;
    const [states, sum] = tf.tidy((): [tf.Tensor2D, tf.Tensor2D] => {
      const some = part(x, from, size);
      const gradient = ofLogits ?? lossesOfRows(some, through, part(targets, from, size)).gradient();
      const counts = part(weights, from, size);
      // Weights rows of D, which is smaller than V.
      const weighed = tf.mul<tf.Tensor2D>(some, counts);
      const piece = head.isTied ? matMulTransposedA(gradient, weighed) : matMulTransposedA(weighed, gradient);
      return [
        tf.mul<tf.Tensor2D>(through.states(gradient), counts),
        before === null ? piece : tf.add<tf.Tensor2D>(before, piece),
      ];
    });
    before?.dispose();
    ofX.push(states);
    ofWeight = sum;
  }
  return [ofX.length === 1 ? ofX[0]! : tf.concat(ofX), ofWeight!];
}

/** The products of the head with chunks of rows. */
interface Products extends Pick<LossHead, "softCap"> {
  /** x [n, D] → [n, V]. */
  readonly logits: (x: tf.Tensor2D) => tf.Tensor2D;
  /** The gradient of the logits [n, V] → the gradient of x [n, D]. */
  readonly states: (gradient: tf.Tensor2D) => tf.Tensor2D;
}

/** Returns the products; transposes the weight only if a requested product needs it. */
function productsOf(
  { weight, isTied, softCap }: LossHead,
  requested: { readonly logits: boolean; readonly states: boolean },
): Products {
  const along = (a: tf.Tensor2D): tf.Tensor2D => tf.matMul(a, weight);
  const across = requested[isTied ? "logits" : "states"] ? timesTransposed(weight) : along;
  return { logits: isTied ? across : along, states: isTied ? along : across, softCap };
}

/** Returns the losses of some rows, and the gradient of their sum in the logits before the cap. */
function lossesOfRows(
  x: tf.Tensor2D,
  { logits: through, softCap }: Products,
  targets: tf.Tensor1D,
): TargetLosses {
  const products = through(x);
  const bounded = softCap === null ? null : tanh(tf.div<tf.Tensor2D>(products, softCap));
  const { losses, gradient } = lossesOf(bounded === null ? products : tf.mul(bounded, softCap!), targets);
  return {
    losses,
    gradient: () => (bounded === null ? gradient() : tf.mul(gradient(), tanhSlope(bounded))),
  };
}

/** Computes `targetLosses`, with the kernel of native TensorFlow if it is there. */
function lossesOf(logits: tf.Tensor2D, targets: tf.Tensor1D): TargetLosses {
  if (!hasNativeKernels()) return targetLosses(logits, targets);
  const [losses, gradient] = runNative("PeriodicTargetLosses", [logits, targets], {});
  return { losses: losses as tf.Tensor1D, gradient: () => gradient as tf.Tensor2D };
}

/** Computes cross-entropy. logits [N, V], targets int32 [N] → the negative log-likelihood of each target in nats, [N]. */
export function crossEntropy(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  const isTaken = isDifferentiated();
  return differentiable([logits], (save) => {
    const { losses, gradient } = lossesOf(logits, targets);
    if (isTaken) save([gradient()]);
    return {
      value: losses,
      backward: (above, saved) => [tf.mul(saved[0]!, tf.reshape(above, [-1, 1]))],
    };
  });
}
