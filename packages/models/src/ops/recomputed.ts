import * as tf from "@tensorflow/tfjs-core";
import { differentiable, gradientsOf, isWanted } from "./differentiable.ts";

export interface RecomputedInputs {
  readonly x: tf.Tensor2D;
  /** What else `run` is differentiable in. They must live, and be as they are, until the gradient has been taken. */
  readonly weights: readonly tf.Tensor[];
  /** What else it reads that may be disposed before. */
  readonly beside: readonly tf.Tensor[];
}

/**
 * What `run` gives of x, differentiable in x and the weights, with nothing kept but x and what is beside it: the backward
 * pass runs it again (activation checkpointing; Chen et al. 2016). `run` must give the same bits both times.
 */
export function recomputed<T extends tf.Tensor>(
  { x, weights, beside }: RecomputedInputs,
  run: (x: tf.Tensor2D, beside: readonly tf.Tensor[]) => T,
): T {
  return differentiable([x, ...weights], (keep) => {
    const isWantedOf = [x, ...weights].map(isWanted);
    keep([x, ...beside]);
    return {
      value: run(x, beside),
      backward(above, [x, ...beside]) {
        const inputs = [x!, ...weights];
        const wanted = inputs.filter((_, i) => isWantedOf[i]);
        const found = gradientsOf(wanted, () =>
          gradientsInBackward(() => run(x as tf.Tensor2D, beside), wanted, above),
        ).values();
        return isWantedOf.map((isOne) => (isOne ? found.next().value! : null));
      },
    };
  });
}

/** A tape inside of a backward pass, which is at work on the tape that was recorded before. */
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
