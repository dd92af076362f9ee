import { FusedCall } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";

/** Computes gradient norms. On backends that run graphs, each norm is one call of a graph that is kept until `dispose`. */
export class GradientNorm {
  readonly #call = new FusedCall("The norm of gradients", (gradients) => [
    tf.sqrt(tf.sum(tf.stack(gradients.map((gradient) => tf.tidy(() => tf.sum(tf.square(gradient))))))),
  ]);

  /** Returns √ Σ ‖gradient‖², the norm of all gradients as one vector; null if there are none. */
  async of(gradients: readonly tf.Tensor[]): Promise<number | null> {
    if (gradients.length === 0) return null;
    const norm = tf.tidy(() => this.#call.call(gradients)[0]!);
    try {
      return (await norm.data<"float32">())[0] ?? null;
    } finally {
      norm.dispose();
    }
  }

  dispose(): void {
    this.#call.dispose();
  }
}

/**
 * Returns the factor that scales gradients of this norm to at most `maxNorm`, as `torch.nn.utils.clip_grad_norm_` (2.13):
 * min(1, maxNorm / (norm + 1e-6)). 1 if `maxNorm` is null (no clipping).
 */
export const clipFactor = (norm: number, maxNorm: number | null): number =>
  maxNorm === null ? 1 : Math.min(1, maxNorm / (norm + 1e-6));
