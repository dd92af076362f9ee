import * as tf from "@tensorflow/tfjs-core";
import { chunksOf, part, type Chunk } from "./select.ts";
import { differentiable, gradientsOf, isWanted } from "./differentiable.ts";

export interface RecomputedInputs {
  readonly x: tf.Tensor2D;
  /** Further differentiable inputs. They must stay alive and unchanged until the gradient has been computed. */
  readonly weights: readonly tf.Tensor[];
  /** Further inputs without gradients, which the caller may dispose earlier. */
  readonly beside: readonly tf.Tensor[];
}

/**
 * Runs `run`, differentiable in x and the weights, and keeps only x and `beside`: the backward pass runs it again
 * (activation checkpointing; Chen et al. 2016). `run` must return the same bits both times.
 */
export function recomputed<T extends tf.Tensor>(
  { x, weights, beside }: RecomputedInputs,
  run: (x: tf.Tensor2D, beside: readonly tf.Tensor[]) => T,
): T {
  return differentiable([x, ...weights], (save) => {
    const isWantedOf = [x, ...weights].map(isWanted);
    save([x, ...beside]);
    return {
      value: run(x, beside),
      backward(above, [x, ...beside]) {
        const wanted = [x!, ...weights].filter((_, i) => isWantedOf[i]);
        return inPlaces(
          isWantedOf,
          gradientsAgain(() => run(x as tf.Tensor2D, beside), wanted, above),
        );
      },
    };
  });
}

/**
 * Runs a function of rows like `recomputed`, at most `most` rows at a time in both passes. x and `beside` have N rows, and
 * `run` returns one number per row.
 */
export function recomputedByRows(
  { x, weights, beside }: RecomputedInputs,
  most: number,
  run: (x: tf.Tensor2D, beside: readonly tf.Tensor[]) => tf.Tensor1D,
): tf.Tensor1D {
  const chunks = chunksOf(x.shape[0], most);
  return differentiable([x, ...weights], (save) => {
    const isWantedOf = [x, ...weights].map(isWanted);
    save([x, ...beside]);
    const parts = (all: readonly tf.Tensor[], [from, size]: Chunk) => all.map((x) => part(x, from, size));
    const runPart = ([x, ...beside]: readonly tf.Tensor[]) => run(x as tf.Tensor2D, beside);
    return {
      value: tf.concat(chunks.map((chunk) => tf.tidy(() => runPart(parts([x, ...beside], chunk))))),
      backward(above, saved) {
        const isXWanted = isWantedOf[0]!;
        const ofX: tf.Tensor[] = [];
        let sums: tf.Tensor[] = [];
        for (const chunk of chunks) {
          const before = sums;
          const isSum = (i: number) => i > 0 || !isXWanted;
          sums = tf.tidy(() => {
            const ofChunk = parts(saved, chunk);
            const inputs = [ofChunk[0]!, ...weights].filter((_, i) => isWantedOf[i]);
            const gradients = gradientsAgain(() => runPart(ofChunk), inputs, part(above, ...chunk));
            return gradients.map((grad, i) => (isSum(i) && before[i] ? tf.add(grad, before[i]) : grad));
          });
          if (isXWanted) ofX.push(sums[0]!);
          tf.dispose(before.filter((_, i) => isSum(i)));
        }
        return inPlaces(isWantedOf, isXWanted ? [tf.concat(ofX), ...sums.slice(1)] : sums);
      },
    };
  });
}

/** Puts each gradient at the index of its input, and null at the others. */
function inPlaces(isWantedOf: readonly boolean[], gradients: readonly tf.Tensor[]): (tf.Tensor | null)[] {
  const left = gradients.values();
  return isWantedOf.map((isOne) => (isOne ? left.next().value! : null));
}

const gradientsAgain = <T extends tf.Tensor>(run: () => T, of: readonly tf.Tensor[], above: T): tf.Tensor[] =>
  gradientsOf(of, () => gradientsInBackward(run, of, above));

/** Records a tape within a backward pass, and then restores the tape that the backward pass works on. */
function gradientsInBackward<T extends tf.Tensor>(
  run: () => T,
  of: readonly tf.Tensor[],
  above: T,
): tf.Tensor[] {
  const { state } = tf.engine();
  const { activeTape } = state;
  try {
    const { grads } = tf.engine().gradients(run, [...of], above, true);
    return grads.map((gradient, i) => (gradient as tf.Tensor | undefined) ?? tf.zerosLike(of[i]!));
  } finally {
    state.activeTape = activeTape;
  }
}
