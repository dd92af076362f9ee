import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import type { TrainableLM } from "@periodic-eval/tfjs";

/** Returns training logits of two positions with streams of this seed, and the names of the streams. */
export function drop(
  model: TrainableLM,
  ids: readonly (readonly number[])[],
  seed: string,
): { readonly logits: readonly number[]; readonly names: readonly string[] } {
  const names: string[] = [];
  const random = (name: string) => {
    names.push(name);
    return namedStream(`${seed} ${name}`);
  };
  const logits = tf.tidy(() => {
    const input = tf.tensor2d(ids.flat(), [ids.length, ids[0]!.length], "int32");
    return [...model.trainingLogits(input, tf.tensor1d([0, 6], "int32"), random).dataSync()];
  });
  return { logits, names };
}
