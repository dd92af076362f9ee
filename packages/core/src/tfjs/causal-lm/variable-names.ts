import * as tf from "@tensorflow/tfjs-core";

/**
 * Returns an unused variable name for a weight. TensorFlow.js has one registry of variable names per process, which its
 * optimizers use, so a second model's variables get a number: `lm_head.weight#2`.
 */
export function variableName(weight: string): string {
  const { registeredVariables } = tf.engine();
  let free = weight;
  for (let model = 2; free in registeredVariables; model += 1) free = `${weight}#${model}`;
  return free;
}

/** Returns the weight's name in a checkpoint, from a variable that `variableName` named. */
export const weightName = ({ name }: Pick<tf.Variable, "name">): string => name.replace(/#\d+$/, "");
