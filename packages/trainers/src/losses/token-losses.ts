import type * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import { crossEntropy } from "./cross-entropy.ts";

/** What a loss is made of: ids int32 [B, T], right-padded; `targets` int32 [N], predicted at `rows` int32 [N] of B·T. */
export interface ScoredTokens {
  readonly ids: tf.Tensor2D;
  readonly rows: tf.Tensor1D;
  readonly targets: tf.Tensor1D;
  /** As `TrainableLM.trainingLogits` takes them; null or left out where no row holds more than one document. */
  readonly documentStarts?: Int32Array | null;
}

/**
 * The negative log-likelihood of each target, in nats, [N], differentiable in the model's trainables: by the model's own
 * way where it has one, else from its logits. Disposing is the caller's.
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
