import type * as tf from "@tensorflow/tfjs-core";

/** A sum over everything scored, and its gradients by variable name. The holder disposes both. */
export type LossAndGradients = {
  readonly loss: tf.Scalar;
  readonly gradients: tf.NamedTensorMap;
};

/** What one optimizer step learns from; nothing is computed until `gradients` is called. */
export interface StepWork {
  /** What the loss sum is divided by: scored tokens. */
  readonly scored: number;
  /** Tokens fed, padding not counted. */
  readonly tokens: number;
  /** The rows, by file and line, for errors. */
  readonly where: readonly string[];
  gradients(): LossAndGradients;
}
