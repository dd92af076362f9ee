import * as tf from "@tensorflow/tfjs-core";

/**
 * The name for a variable of this weight. TensorFlow.js keeps one registry of names for the process, by which its
 * optimizers find variables: a second model's carry a number, `lm_head.weight#2`.
 */
export function variableName(weight: string): string {
  const { registeredVariables } = tf.engine();
  let free = weight;
  for (let model = 2; free in registeredVariables; model += 1) free = `${weight}#${model}`;
  return free;
}

/** The checkpoint's name of a variable: the weight that `variableName` named it after. */
export const weightName = ({ name }: Pick<tf.Variable, "name">): string => name.replace(/#\d+$/, "");
