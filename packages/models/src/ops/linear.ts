import * as tf from "@tensorflow/tfjs-core";
import { isHalf } from "./half-weights.ts";
import { hasNativeProduct, runNative } from "./native.ts";
import { differentiable, isWanted } from "./differentiable.ts";
import { matMulTransposedA, matMulTransposedB, sumOfRows } from "./mat-mul.ts";

/** x [N, in], weight [in, out], float32 or half-width, bias [out] → x·weight + bias [N, out]. */
export function linear(x: tf.Tensor2D, weight: tf.Tensor2D, bias: tf.Tensor1D | null): tf.Tensor2D {
  const inputs = bias === null ? [x, weight] : [x, weight, bias];
  return differentiable(inputs, (save) => {
    const isWeightWanted = isWanted(weight);
    const isBiasWanted = bias !== null && isWanted(bias);
    save(isWeightWanted ? [weight, x] : [weight]);
    const product = timesWeight(x, weight);
    return {
      value: bias === null ? product : tf.add<tf.Tensor2D>(product, bias),
      backward: (gradient, saved) => {
        const [weight, x] = saved as [tf.Tensor2D, tf.Tensor2D];
        return [
          matMulTransposedB(gradient, weight),
          isWeightWanted ? matMulTransposedA(x, gradient) : null,
          isBiasWanted ? sumOfRows(gradient) : null,
        ];
      },
    };
  });
}

/** x [N, in], weight [in, out] → x·weight [N, out]. */
const timesWeight = (x: tf.Tensor2D, weight: tf.Tensor2D): tf.Tensor2D =>
  isHalf(weight) || hasNativeProduct()
    ? (runNative("PeriodicMatMul", [x, weight], {}) as tf.Tensor2D)
    : tf.matMul(x, weight);

/** The head of a model with tied embeddings: x [N, D], embedding [V, D], or half-width [D, V] → x·embeddingᵀ [N, V]. */
export function tiedHead(x: tf.Tensor2D, embedding: tf.Tensor2D): tf.Tensor2D {
  return differentiable([x, embedding], (save) => {
    const isTrained = isWanted(embedding);
    save(isTrained ? [embedding, x] : [embedding]);
    return {
      value: isHalf(embedding) ? timesWeight(x, embedding) : matMulTransposedB(x, embedding),
      backward: (gradient, saved) => {
        const [embedding, x] = saved as [tf.Tensor2D, tf.Tensor2D];
        return [tf.matMul(gradient, embedding), isTrained ? matMulTransposedA(gradient, x) : null];
      },
    };
  });
}

/** a [in, rank], b [rank, out]. */
export interface LoraFactors {
  readonly a: tf.Tensor2D;
  readonly b: tf.Tensor2D;
  readonly scale: number;
}

/** output [N, out], x [N, in] → output + scale · x·a·b [N, out] (Hu et al. 2021). */
export function addLora(output: tf.Tensor2D, x: tf.Tensor2D, { a, b, scale }: LoraFactors): tf.Tensor2D {
  return differentiable([output, x, a, b], (save) => {
    const isXWanted = isWanted(x);
    // Scales the narrow factor, which is cheaper.
    const low = tf.mul<tf.Tensor2D>(timesWeight(x, a), scale);
    save([x, a, b, low]);
    return {
      value: tf.add<tf.Tensor2D>(output, timesWeight(low, b)),
      backward: (gradient, saved) => {
        const [x, a, b, low] = saved as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
        const ofLow = tf.mul<tf.Tensor2D>(matMulTransposedB(gradient, b), scale);
        return [
          tf.clone(gradient),
          isXWanted ? matMulTransposedB(ofLow, a) : null,
          matMulTransposedA(x, ofLow),
          matMulTransposedA(low, gradient),
        ];
      },
    };
  });
}
