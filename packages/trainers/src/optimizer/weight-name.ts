import type * as tf from "@tensorflow/tfjs-core";

/**
 * The checkpoint's name of a variable. TensorFlow.js keeps one registry of names for the process, so that a second
 * model's variables carry a number: `lm_head.weight#2`.
 */
export const weightName = (variable: tf.Variable): string => variable.name.replace(/#\d+$/, "");
