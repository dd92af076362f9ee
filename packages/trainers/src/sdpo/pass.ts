import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom, TrainableLM } from "@periodic-eval/tfjs";
import { collate, scoredTokensOf, type Batch } from "../data/collate.ts";
import type { LossAndGradients } from "../loop/step-work.ts";
import type { RenderedExample } from "./example.ts";
import type { SDPOConfig } from "./sdpo-config.ts";
import { sdpoLossSum, type SDPOLoss, type SDPOLossOptions } from "./sdpo-loss.ts";
import { drawnLogProbs, readTeacher, type TeacherReading } from "./teacher.ts";

/** The data of one forward and backward pass. N positions in the order of the batch. */
export interface SDPOPass {
  /** The examples as the student reads them. */
  readonly batch: Batch;
  /** [N], in nats. */
  readonly oldLogProbs: Float32Array;
  /** [N], in nats; null for a model without a base. */
  readonly baseLogProbs: Float32Array | null;
  readonly teacher: TeacherReading;
}

/** A pass whose teacher has not been read yet. */
export interface UntaughtPass extends Omit<SDPOPass, "teacher"> {
  readTeacher(): Promise<TeacherReading>;
}

/**
 * Splits a batch into passes of `microBatchSize` examples. Reads models that do not change during the update once, here: the
 * base, both for the KL term and as teacher.
 */
export async function passesOf(
  model: TrainableLM,
  examples: readonly RenderedExample[],
  { microBatchSize, teacher, teacherTopK }: SDPOConfig,
): Promise<UntaughtPass[]> {
  const passes: UntaughtPass[] = [];
  for (let from = 0; from < examples.length; from += microBatchSize) {
    const some = examples.slice(from, from + microBatchSize);
    const batchOf = (reader: "student" | "teacher") =>
      collate(
        some.map((example) => example[reader]),
        model.fixedLength,
      );
    const [batch, teacherBatch] = [batchOf("student"), batchOf("teacher")];
    const frozen = teacher === "base" ? await readTeacher(model.base!, teacherBatch, teacherTopK) : null;
    passes.push({
      batch,
      oldLogProbs: Float32Array.from(some.flatMap(({ oldLogProbs }) => oldLogProbs)),
      baseLogProbs: model.base ? await drawnLogProbs(model.base, batch) : null,
      readTeacher: async () => frozen ?? readTeacher(model, teacherBatch, teacherTopK),
    });
  }
  return passes;
}

/**
 * Returns the loss summed over the positions of a pass, its gradients and the sums of its metrics, from one forward and one
 * backward pass. The caller disposes all of them.
 *
 * @param options `random` holds the streams for dropout.
 */
export function passGradients(
  model: TrainableLM,
  { batch, oldLogProbs, baseLogProbs, teacher }: SDPOPass,
  options: SDPOLossOptions & { readonly random: NamedRandom },
): LossAndGradients {
  let kept: SDPOLoss["sums"] = {};
  try {
    return tf.tidy(() => {
      const { ids, rows, targets } = scoredTokensOf(batch);
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
        kept = sums;
        return loss;
      }, [...model.trainables()]);
      const sums = Object.entries(kept).map(([name, sum]) => [name, tf.clone(sum)] as const);
      return {
        loss: value,
        gradients: grads,
        sums: { ...Object.fromEntries(sums), teacher_log_prob: tf.scalar(teacher.drawn) },
      };
    });
  } finally {
    tf.dispose(kept);
  }
}
