import * as tf from "@tensorflow/tfjs-core";

/**
 * The kernel with which a backend runs a `FusedCall`: its inputs are numbered and its attribute `call` is the `FusedCall`.
 * `@periodic-eval/kernels` registers it for backends that run graphs.
 */
export const fusedCallKernel = "PeriodicEvalFusedCall";

/**
 * The kernel with which a backend runs one step of AdamW on a weight: `gradient`, `weight`, `mean` and `meanSq`, float32 of the same
 * shape with at least four values → the new weight and both means, other tensors. The attribute `numbers` is β₁, the factor of the
 * gradient, β₂, the factor of its square, ε, the step size and the factor of the weight. `@periodic-eval/kernels` registers it.
 */
export const adamWKernel = "PeriodicEvalAdamW";

/**
 * A function of tensors that consists of many small operations. A backend that runs graphs executes it in one call; other
 * backends execute the operations one by one. Its JavaScript may depend on nothing but the shapes of its inputs.
 */
export class FusedCall {
  /** The subject of the warning that a backend cannot fuse it: `Updating weights`. */
  readonly doing: string;
  readonly run: (inputs: readonly tf.Tensor[]) => tf.Tensor[];
  /** The backend's graph for this function; null before the first call and without a backend that fuses. */
  held: { dispose(): void } | null = null;

  constructor(doing: string, run: (inputs: readonly tf.Tensor[]) => tf.Tensor[]) {
    this.doing = doing;
    this.run = run;
  }

  /** Runs the function, without gradients. The surrounding `tf.tidy` or the caller disposes the returned tensors. */
  call(inputs: readonly tf.Tensor[]): tf.Tensor[] {
    if (tf.getKernel(fusedCallKernel, tf.getBackend()) === undefined) return tf.tidy(() => this.run(inputs));
    const numbered = Object.fromEntries(inputs.entries());
    return tf.engine().runKernel(fusedCallKernel, numbered, { call: this } as object as tf.NamedAttrMap);
  }

  /** Disposes the backend's graph. */
  dispose(): void {
    this.held?.dispose();
    this.held = null;
  }
}
