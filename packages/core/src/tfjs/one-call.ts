import * as tf from "@tensorflow/tfjs-core";

/**
 * The kernel by which an engine runs a `OneCall`, its inputs numbered and the `OneCall` its attribute `call`.
 * `@periodic-eval/models` registers it for engines that run graphs.
 */
export const oneCallKernel = "PeriodicEvalOneCall";

/**
 * A function of tensors that consists of many small operations: one call into the engine where it runs graphs, and the
 * operations one by one where it does not. Its JavaScript may depend on nothing but the shapes of its inputs.
 */
export class OneCall {
  /** What runs slower where the engine cannot, as the begin of a sentence. */
  readonly doing: string;
  readonly run: (inputs: readonly tf.Tensor[]) => tf.Tensor[];
  /** What the engine keeps for it. */
  held: { dispose(): void } | null = null;

  constructor(doing: string, run: (inputs: readonly tf.Tensor[]) => tf.Tensor[]) {
    this.doing = doing;
    this.run = run;
  }

  /** New tensors belong to the surrounding `tf.tidy`, or the caller. Without gradients. */
  call(inputs: readonly tf.Tensor[]): tf.Tensor[] {
    if (tf.getKernel(oneCallKernel, tf.getBackend()) === undefined) return tf.tidy(() => this.run(inputs));
    const numbered = Object.fromEntries(inputs.entries());
    return tf.engine().runKernel(oneCallKernel, numbered, { call: this } as object as tf.NamedAttrMap);
  }

  dispose(): void {
    this.held?.dispose();
    this.held = null;
  }
}
