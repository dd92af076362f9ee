import * as tf from "@tensorflow/tfjs-core";
import { targetLosses, type TargetLosses } from "@periodic-eval/core/tfjs";
import { chunkBytes, chunksOf, part, rowsIn, type Chunk } from "./chunks.ts";
import { differentiable, isDifferentiated, isWanted } from "./differentiable.ts";
import { matMulTransposedA, timesTransposed } from "./mat-mul.ts";
import { tanh, tanhSlope } from "./soft-cap.ts";

export interface LossHead {
  /** [V, D] where it is tied to the embedding, else [D, V]. */
  readonly weight: tf.Tensor2D;
  readonly isTied: boolean;
  /** Logits x become cap · tanh(x / cap). */
  readonly softCap: number | null;
}

/**
 * The head and the loss in one: x [N, D], targets int32 [N] → the negative log-likelihood of each target, in nats, [N].
 * Logits exist of so many rows at a time as `bytes` hold. Of a head that is not trained the gradient of x is computed
 * at once, and nothing else kept; of one that is, softmax − one-hot is kept, or computed again if it was of many chunks.
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
  return differentiable([x, head.weight], (keep) => {
    const isSingle = chunks.length === 1;
    const through = productsOf(head, { logits: true, states: isXWanted && !isTrained });
    const seen = chunks.map(([from, size]) =>
      tf.tidy((): tf.Tensor[] => {
        const { losses, gradient } = look(part(x, from, size), through, part(targets, from, size));
        if (isTrained) return isSingle ? [losses, gradient()] : [losses];
        return isXWanted ? [losses, through.states(gradient())] : [losses];
      }),
    );
    const together = (at: number) => (isSingle ? seen[0]![at]! : tf.concat(seen.map((each) => each[at]!)));
    const hasMore = seen[0]!.length > 1;
    keep([head.weight, targets, ...(isTrained ? [x] : []), ...(hasMore ? [together(1)] : [])]);
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
  /** Of the losses' sum, where there is one chunk. */
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
      const gradient = ofLogits ?? look(some, through, part(targets, from, size)).gradient();
      const counts = part(weights, from, size);
      // Rows of D are weighed, not rows of V.
      const weighed = tf.mul<tf.Tensor2D>(some, counts);
      const found = head.isTied ? matMulTransposedA(gradient, weighed) : matMulTransposedA(weighed, gradient);
      return [
        tf.mul<tf.Tensor2D>(through.states(gradient), counts),
        before === null ? found : tf.add<tf.Tensor2D>(before, found),
      ];
    });
    before?.dispose();
    ofX.push(states);
    ofWeight = sum;
  }
  return [ofX.length === 1 ? ofX[0]! : tf.concat(ofX), ofWeight!];
}

/** The head's products with many chunks. */
interface Products extends Pick<LossHead, "softCap"> {
  /** x [n, D] → [n, V]. */
  readonly logits: (x: tf.Tensor2D) => tf.Tensor2D;
  /** The gradient of logits [n, V] → that of x [n, D]. */
  readonly states: (gradient: tf.Tensor2D) => tf.Tensor2D;
}

/** Those that are asked for: where no product is with the transposed weight, it is not turned. */
function productsOf(
  { weight, isTied, softCap }: LossHead,
  asked: { readonly logits: boolean; readonly states: boolean },
): Products {
  const along = (a: tf.Tensor2D): tf.Tensor2D => tf.matMul(a, weight);
  const across = asked[isTied ? "logits" : "states"] ? timesTransposed(weight) : along;
  return { logits: isTied ? across : along, states: isTied ? along : across, softCap };
}

/** Some rows: their losses, and the gradient of the losses' sum in the logits before the cap. */
function look(x: tf.Tensor2D, { logits: through, softCap }: Products, targets: tf.Tensor1D): TargetLosses {
  const products = through(x);
  const bent = softCap === null ? null : tanh(tf.div<tf.Tensor2D>(products, softCap));
  const { losses, gradient } = targetLosses(bent === null ? products : tf.mul(bent, softCap!), targets);
  return {
    losses,
    gradient: () => (bent === null ? gradient() : tf.mul(gradient(), tanhSlope(bent))),
  };
}
