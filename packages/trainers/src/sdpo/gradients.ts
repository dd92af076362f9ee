import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/core/tfjs";
import type { Batch } from "../data/collate.ts";
import type { LossAndGradients } from "../loop/types.ts";
import { sdpoLossSum, type SDPOLoss, type SDPOLossOptions } from "./sdpo-loss.ts";
import { tensorsOf, type TeacherReading } from "./teacher.ts";

/** What a forward and backward pass learns from, beside the model. N positions in the order of the batch. */
export interface SDPOPass {
  /** As the student reads it. */
  readonly batch: Batch;
  /** [N], in nats. */
  readonly oldLogProbs: Float32Array;
  /** [N], in nats; null where there is no base. */
  readonly baseLogProbs: Float32Array | null;
  readonly teacher: TeacherReading;
}

/**
 * The loss summed over the positions of a pass, its gradients, and sums of what is told of it, from one forward pass and one
 * backward. The caller disposes all.
 *
 * @param random dropout's streams
 */
export function passGradients(
  model: TrainableLM,
  { batch, oldLogProbs, baseLogProbs, teacher }: SDPOPass,
  options: SDPOLossOptions & { readonly random: NamedRandom },
): LossAndGradients {
  let told: SDPOLoss["sums"] = {};
  try {
    return tf.tidy(() => {
      const { ids, rows, targets } = tensorsOf(batch);
      const shape: [number, number] = [targets.size, teacher.k];
      const scored = {
        targets,
        oldLogProbs: tf.tensor1d(oldLogProbs),
        baseLogProbs: baseLogProbs && tf.tensor1d(baseLogProbs),
        teacher: {
          logProbs: tf.tensor2d(teacher.logProbs, shape),
          ids: tf.tensor2d(teacher.ids, shape, "int32"),
        },
      };
      const { value, grads } = tf.variableGrads(() => {
        const { loss, sums } = sdpoLossSum(model.trainingLogits(ids, rows, options.random), scored, options);
        told = sums;
        return loss;
      }, [...model.trainables()]);
      const sums = Object.entries(told).map(([name, sum]) => [name, tf.clone(sum)] as const);
      return {
        loss: value,
        gradients: grads,
        sums: { ...Object.fromEntries(sums), teacher_log_prob: tf.scalar(teacher.drawn) },
      };
    });
  } finally {
    tf.dispose(told);
  }
}
