import * as tf from "@tensorflow/tfjs-core";
import { inEvaluation, type CausalLM, type NamedRandom, type TrainableLM } from "@periodic-eval/tfjs";
import { crossEntropy } from "./cross-entropy.ts";

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
