import * as tf from "@tensorflow/tfjs-core";
import { targetLosses } from "@periodic-eval/core/tfjs";
import type { SDPOConfig } from "./sdpo-config.ts";
import { chunkBytes, inChunks, type Part } from "./chunks.ts";
import { divergence, type PerPosition, type TeacherTop } from "./divergence.ts";

export type SDPOLossOptions = Pick<SDPOConfig, "alpha" | "isClip" | "klRegWeight" | "klForm">;

/** N positions of responses, all batches' rows one after the other; K tokens of the teacher at each. */
export interface ScoredResponses {
  /** int32 [N], the tokens that were drawn. */
  readonly targets: tf.Tensor1D;
  /** float32 [N], their log-probs when they were drawn, in nats. */
  readonly oldLogProbs: tf.Tensor1D;
  /** float32 [N], their log-probs by the model without its adapter, in nats; null where there is none to ask. */
  readonly baseLogProbs: tf.Tensor1D | null;
  readonly teacher: TeacherTop;
}

/** What is told beside the loss, each a mean over positions. */
const partNames = ["distill_loss", "kl_reg", "mean_is_ratio", "clip_fraction", "student_log_prob"] as const;

export type SDPOPart = (typeof partNames)[number];

export interface SDPOLoss {
  /** Differentiable in the logits once. */
  readonly loss: tf.Scalar;
  /**
   * Sums over positions: the loss's two parts (`kl_reg` before its weight, and left out where there is no base), the
   * importance ratio as it was used, whether it was clipped, log p of the drawn token.
   */
  readonly sums: Readonly<Partial<Record<SDPOPart, tf.Scalar>>>;
}

/**
 * The loss of self-distillation policy optimization (Hübotter et al. 2026, arXiv 2601.20802), summed over N positions.
 * With s = log p of the drawn token by the student, s_old when it was drawn, and D of `divergence`:
 *
 *     loss = min(exp(clamp(s − s_old, ±20)), isClip) · D + klRegWeight · (exp(d) − 1 − d)
 *
 * The ratio has no gradient. d = clamp(base − s, ±20) for `k3`, an unbiased estimate of KL(student ‖ base) on tokens that
 * the student drew; clamp(s − base, ±20) for `claas`, as kfallah/CLaaS writes it.
 *
 * The gradient in the logits is known in closed form, K + 1 entries a position and a multiple of softmax − one-hot; it is
 * computed with the loss, of so many rows at a time as 16 MB hold. Nothing of it is computed where none is taken.
 *
 * @param logits float32 [N, V], N ≥ 1
 * @param bytes how much of the logits is looked at in one go
 * @returns `sums` outlive a surrounding `tf.tidy`: disposing them is the caller's, as of the loss. NaN or Inf in, NaN or
 *   Inf out.
 */
export function sdpoLossSum(
  logits: tf.Tensor2D,
  scored: ScoredResponses,
  options: SDPOLossOptions,
  bytes = chunkBytes,
): SDPOLoss {
  const isTaken = tf.engine().isTapeOn();
  const told: { parts?: tf.Tensor1D } = {};
  const summed = tf.customGrad((x, save) => {
    const seen = inChunks(
      x as tf.Tensor2D,
      (some, part) => {
        const { loss, parts, gradient } = look(some, partOf(scored, part), options);
        const totals = tf.stack([tf.sum(loss), ...parts.map((each) => tf.sum(each))]);
        return isTaken ? [totals, gradient()] : [totals];
      },
      bytes,
    );
    const totals = seen.map(([each]) => each!).reduce((sum, each) => tf.add(sum, each));
    if (isTaken) {
      const gradients = seen.map((each) => each[1] as tf.Tensor2D);
      const gradient = gradients.length === 1 ? gradients[0]! : tf.concat(gradients);
      (save as (tensors: tf.Tensor[]) => void)([gradient]);
    }
    told.parts = tf.keep(tf.slice(totals, 1) as tf.Tensor1D);
    return {
      value: tf.sum<tf.Scalar>(tf.slice(totals, 0, 1)),
      gradFunc: (dy: tf.Scalar, [gradient]: tf.Tensor[]) => tf.mul(gradient!, dy),
    };
  });
  try {
    const loss = summed(logits);
    const values = tf.unstack(told.parts!).map((each) => tf.keep(each) as tf.Scalar);
    const names = partNames.filter((name) => name !== "kl_reg" || scored.baseLogProbs !== null);
    return { loss, sums: Object.fromEntries(names.map((name, i) => [name, values[i]!])) };
  } finally {
    told.parts?.dispose();
  }
}

interface Look {
  /** [n]. */
  readonly loss: tf.Tensor1D;
  /** By `partNames`, each [n]; without `kl_reg` where there is no base. */
  readonly parts: readonly tf.Tensor1D[];
  /** Of Σ loss, [n, V]. */
  readonly gradient: () => tf.Tensor2D;
}

/** Some rows. */
function look(
  logits: tf.Tensor2D,
  { targets, oldLogProbs, baseLogProbs, teacher }: ScoredResponses,
  { alpha, isClip, klRegWeight, klForm }: SDPOLossOptions,
): Look {
  const ofTargets = targetLosses(logits, targets);
  const student = tf.neg<tf.Tensor1D>(ofTargets.losses);
  const unclipped = tf.exp(tf.clipByValue(tf.sub(student, oldLogProbs), -widest, widest));
  const ratio = tf.minimum<tf.Tensor1D>(unclipped, isClip);
  const apart = divergence(logits, { targets, student, teacher }, alpha);
  const distill = tf.mul<tf.Tensor1D>(apart.value, ratio);
  const kl = baseLogProbs && klEstimate(student, baseLogProbs, klForm);
  const isRegularized = kl !== null && klRegWeight > 0;
  const isClipped = tf.cast<tf.Tensor1D>(tf.greater(unclipped, isClip), "float32");
  return {
    loss: isRegularized ? tf.add(distill, tf.mul(kl.value, klRegWeight)) : distill,
    parts: [distill, ...(kl === null ? [] : [kl.value]), ratio, isClipped, student],
    gradient() {
      const slopes = [
        ...(apart.slope === null ? [] : [tf.mul(apart.slope, ratio)]),
        ...(isRegularized ? [tf.mul(kl.slope, klRegWeight)] : []),
      ];
      const scattered = apart.ofLogits?.(ratio) ?? null;
      if (slopes.length === 0) return scattered!;
      // Of s in the logits: one-hot − softmax.
      const through = tf.neg(tf.reshape(tf.addN(slopes), [-1, 1]));
      const ofStudent = tf.mul<tf.Tensor2D>(ofTargets.gradient(), through);
      return scattered === null ? ofStudent : tf.add(scattered, ofStudent);
    },
  };
}

/** Log-ratios beyond this are taken for this: e²⁰ is half a billion. */
const widest = 20;

/** exp(d) − 1 − d, and its derivative by s, which is 0 where d is clamped. */
function klEstimate(
  student: tf.Tensor1D,
  base: tf.Tensor1D,
  form: SDPOLossOptions["klForm"],
): PerPosition & { readonly slope: tf.Tensor1D } {
  const apart = tf.sub(student, base);
  const sign = form === "k3" ? -1 : 1;
  const d = tf.clipByValue<tf.Tensor1D>(tf.mul(apart, sign), -widest, widest);
  const over = tf.expm1(d);
  const isInside = tf.cast(tf.lessEqual(tf.abs(apart), widest), "float32");
  return { value: tf.sub(over, d), slope: tf.mul(tf.mul(over, sign), isInside) };
}

const partOf = ({ targets, oldLogProbs, baseLogProbs, teacher }: ScoredResponses, part: Part) => ({
  targets: part(targets),
  oldLogProbs: part(oldLogProbs),
  baseLogProbs: baseLogProbs && part(baseLogProbs),
  teacher: { logProbs: part(teacher.logProbs), ids: part(teacher.ids) },
});
