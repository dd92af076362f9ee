import type * as tf from "@tensorflow/tfjs-core";

/** Sums over everything that a loss looks at, and the gradients of the first by variable name. The holder disposes all. */
export type LossAndGradients = {
  readonly loss: tf.Scalar;
  readonly gradients: tf.NamedTensorMap;
  /** By the name of the metric that each becomes, divided as the loss is. */
  readonly sums?: Readonly<Record<string, tf.Scalar>>;
};

/** What one optimizer step learns from; nothing is computed until `gradients` is called. */
export interface StepWork {
  /** What sums are divided by: scored tokens of SFT, pairs of DPO. */
  readonly divisor: number;
  /** Tokens fed, padding not counted. */
  readonly tokens: number;
  /** The rows, by file and line, for errors. */
  readonly where: readonly string[];
  gradients(): LossAndGradients;
}
