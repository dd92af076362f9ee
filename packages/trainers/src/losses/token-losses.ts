import type * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import { crossEntropy } from "./cross-entropy.ts";

/** What a loss is made of: ids int32 [B, T], right-padded; `targets` int32 [N], predicted at `rows` int32 [N] of B·T. */
export interface ScoredTokens {
  readonly ids: tf.Tensor2D;
  readonly rows: tf.Tensor1D;
  readonly targets: tf.Tensor1D;
  /** [B·T] where rows hold several documents; only given to a model that takes them. */
  readonly documentStarts?: Int32Array | null;
}

/**
 * The negative log-likelihood of each target, in nats, [N], differentiable in the model's trainables: by the model's own
 * way where it has one, else from its logits. Disposing is the caller's.
 */
export function tokenLosses(
  model: TrainableLM,
  { ids, rows, targets, documentStarts = null }: ScoredTokens,
  random: NamedRandom,
): tf.Tensor1D {
  const documents = documentStarts === null ? ([] as const) : ([documentStarts] as const);
  return (
    model.trainingLosses?.(ids, rows, targets, random, ...documents) ??
    crossEntropy(model.trainingLogits(ids, rows, random, ...documents), targets)
  );
}
