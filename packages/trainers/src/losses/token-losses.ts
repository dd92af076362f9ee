import * as tf from "@tensorflow/tfjs-core";
import { inEvaluation, type CausalLM, type NamedRandom, type TrainableLM } from "@periodic-eval/core/tfjs";
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

/** Any model; what it has of a trainable one is used. */
type ReadLM = CausalLM & Partial<Pick<TrainableLM, "trainingLogits" | "trainingLosses">>;

/**
 * As `tokenLosses`, in evaluation mode and without gradients: a model that has a way of its own holds no more logits at
 * once than it does in training. `documentStarts` are for a model that `takesDocuments`.
 */
export function evaluatedLosses(lm: ReadLM, tokens: ScoredTokens): tf.Tensor1D {
  const { ids, rows, targets, documentStarts } = tokens;
  return inEvaluation(lm, () => {
    const documents: readonly [Int32Array?] = documentStarts ? [documentStarts] : [];
    const losses = lm.trainingLosses?.(ids, rows, targets, refuseToDraw, ...documents);
    return losses ?? tf.tidy(() => crossEntropy(evaluatedLogits(lm, tokens), targets));
  });
}

/** Documents of packed rows are known to training's pass alone, which draws nothing in evaluation mode. */
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
