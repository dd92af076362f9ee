import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import {
  type NamedRandom,
  type TrainableLM,
  inEvaluation,
  targetLosses,
  type CausalLM,
} from "@periodic-eval/tfjs";
import { collate, scoredTokensOf, type Batch } from "../data/collate.ts";
import type { Learner } from "../loop/learner.ts";
import { type LossAndGradients, accumulate } from "../loop/training-data.ts";
import { evaluatedLogits, evaluatedLosses } from "../losses/token-losses.ts";
import type { RenderedExample } from "./example.ts";
import type { SDPOConfig, SDPOMetrics } from "./sdpo-config.ts";
import { sdpoLossSum, type SDPOLoss, type SDPOLossOptions, mapRowChunks } from "./sdpo-loss.ts";

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
  let lossSums: SDPOLoss["sums"] = {};
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
        lossSums = sums;
        return loss;
      }, [...model.trainables()]);
      const sums = Object.entries(lossSums).map(([name, sum]) => [name, tf.clone(sum)] as const);
      return {
        loss: value,
        gradients: grads,
        sums: { ...Object.fromEntries(sums), teacher_log_prob: tf.scalar(teacher.drawn) },
      };
    });
  } finally {
    tf.dispose(lossSums);
  }
}

/** The teacher's log-probs at N positions, without tensors, so that they can be kept from one gradient step to the next. */
interface TeacherReading {
  /** [N, K], in nats, in descending order. */
  readonly logProbs: Float32Array;
  /** [N, K]. */
  readonly ids: Int32Array;
  readonly k: number;
  /** Σ log p of the drawn tokens, in nats. */
  readonly drawn: number;
}

/** Returns the teacher's `topK` most likely tokens (at most all) at each scored position, in evaluation mode. */
async function readTeacher(lm: CausalLM, batch: Batch, topK: number): Promise<TeacherReading> {
  const k = Math.min(topK, lm.vocabSize);
  const [logProbs, ids, drawn] = inEvaluation(lm, () =>
    tf.tidy(() => {
      const { targets, ...read } = scoredTokensOf(batch);
      const chunks = mapRowChunks(evaluatedLogits(lm, read), (logits, select) => {
        const some = select(targets);
        const at = tf.stack([tf.range(0, some.size, 1, "int32"), some], 1);
        const { losses } = targetLosses(logits, some);
        // The losses contain log Σ exp computed from softmax, which is fast on wasm.
        const logSum = tf.add(losses, tf.gatherND(logits, at));
        const { values, indices } = tf.topk(logits, k, true);
        return [tf.sub(values, tf.reshape(logSum, [-1, 1])), indices, tf.neg(tf.sum(losses))];
      });
      const all = (i: number) => chunks.map((each) => each[i]!);
      return [tf.concat(all(0)), tf.concat(all(1)), tf.addN(all(2))] as const;
    }),
  );
  try {
    const [nats, tokens] = [await logProbs.data<"float32">(), await ids.data<"int32">()];
    return { logProbs: nats, ids: tokens, k, drawn: (await drawn.data<"float32">())[0]! };
  } finally {
    tf.dispose([logProbs, ids, drawn]);
  }
}

/** Returns log p of the drawn tokens, in nats, [N], in evaluation mode. */
export async function drawnLogProbs(lm: CausalLM, batch: Batch): Promise<Float32Array> {
  const logProbs = tf.tidy(() => tf.neg(evaluatedLosses(lm, scoredTokensOf(batch))));
  try {
    return await logProbs.data<"float32">();
  } finally {
    logProbs.dispose();
  }
}

/** The position of a gradient step in training; seeds its dropout. */
interface GradientStepPosition {
  readonly phase: string;
  readonly updates: number;
  /** Completed gradient steps of the current update. */
  readonly step: number;
}

/**
 * Takes one gradient step on a batch. Returns its metrics.
 *
 * @throws PeriodicEvalError `model` if the loss or gradient norm is NaN or Inf; this step then changes no weight.
 */
export async function takeGradientStep(
  learner: Learner,
  passes: readonly UntaughtPass[],
  config: SDPOConfig,
  position: GradientStepPosition,
): Promise<SDPOMetrics> {
  const { model } = learner;
  const { phase, updates, step } = position;
  const taught: SDPOPass[] = [];
  for (const { readTeacher, ...pass } of passes) taught.push({ ...pass, teacher: await readTeacher() });
  const work = {
    divisor: responseTokens(passes),
    tokens: passes.reduce((sum, { batch }) => sum + batch.tokens, 0),
    where: [],
    gradients: () => {
      const each = taught.map((pass, i) => () => {
        const random = (place: string) =>
          namedStream(seedOf(String(config.seed), phase, updates, step, i, place));
        return passGradients(model, pass, { ...config, random });
      });
      return config.disableDropout ? inEvaluation(model, () => accumulate(each)) : accumulate(each);
    },
  };
  const { loss, gradNorm, means, applied } = await learner.update(work, config.learningRate);
  if (!applied) throw nonFiniteError(position, loss, gradNorm);
  return {
    loss,
    grad_norm: gradNorm,
    kl_reg: null,
    ...(means as Omit<SDPOMetrics, "loss" | "grad_norm" | "kl_reg">),
  };
}

export const responseTokens = (passes: readonly Pick<SDPOPass, "batch">[]): number =>
  passes.reduce((sum, { batch }) => sum + batch.targets.length, 0);

/** How to undo a partly learned batch. */
export const recoveryAdvice =
  "resume() restores the last checkpoint; if there is none, create a new model and trainer";

const nonFiniteError = (
  { phase, updates, step }: GradientStepPosition,
  loss: number,
  gradNorm: number,
): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where: `phase ${phase}, update ${updates + 1}, gradient step ${step + 1}`,
    got: `a loss of ${loss} and a gradient norm of ${gradNorm}`,
    expected: "finite numbers",
    fix:
      (step === 0
        ? "Continue with another batch: the weights are unchanged. "
        : `Continue with another batch, but first undo what was learned of this one: ${recoveryAdvice}. `) +
      'A lower learningRate is a new training: use a new model and trainer, with another runDir or resume("never").',
  });
