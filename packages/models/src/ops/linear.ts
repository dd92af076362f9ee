import * as tf from "@tensorflow/tfjs-core";
import { differentiable, isWanted } from "./differentiable.ts";
import { matMulTransposedA, matMulTransposedB, sumOfRows } from "./mat-mul.ts";

/** x [N, in], weight [in, out], bias [out] → x·weight + bias [N, out]. */
export function linear(x: tf.Tensor2D, weight: tf.Tensor2D, bias: tf.Tensor1D | null): tf.Tensor2D {
  const inputs = bias === null ? [x, weight] : [x, weight, bias];
  return differentiable(inputs, (keep) => {
    const isWeightWanted = isWanted(weight);
    const isBiasWanted = bias !== null && isWanted(bias);
    keep(isWeightWanted ? [weight, x] : [weight]);
    const product = tf.matMul(x, weight) as tf.Tensor2D;
    return {
      value: bias === null ? product : tf.add<tf.Tensor2D>(product, bias),
      backward: (gradient, kept) => {
        const [weight, x] = kept as [tf.Tensor2D, tf.Tensor2D];
        return [
          matMulTransposedB(gradient, weight),
          isWeightWanted ? matMulTransposedA(x, gradient) : null,
          isBiasWanted ? sumOfRows(gradient) : null,
        ];
      },
    };
  });
}

/** The head of a model with tied embeddings: x [N, D], embedding [V, D] → x·embeddingᵀ [N, V]. */
export function tiedHead(x: tf.Tensor2D, embedding: tf.Tensor2D): tf.Tensor2D {
  return differentiable([x, embedding], (keep) => {
    const isTrained = isWanted(embedding);
    keep(isTrained ? [embedding, x] : [embedding]);
    return {
      value: matMulTransposedB(x, embedding),
      backward: (gradient, kept) => {
        const [embedding, x] = kept as [tf.Tensor2D, tf.Tensor2D];
        return [tf.matMul(gradient, embedding), isTrained ? matMulTransposedA(gradient, x) : null];
      },
    };
  });
}
