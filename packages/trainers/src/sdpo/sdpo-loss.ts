import * as tf from "@tensorflow/tfjs-core";
import { targetLosses } from "@periodic-eval/tfjs";
import type { SDPOConfig } from "./sdpo-config.ts";

export type SDPOLossOptions = Pick<SDPOConfig, "alpha" | "isClip" | "klRegWeight" | "klForm">;

/** N positions of responses, row after row of the batch, with K tokens of the teacher at each. */
export interface ScoredResponses {
  /** int32 [N], the drawn tokens. */
  readonly targets: tf.Tensor1D;
  /** float32 [N], their log-probs when they were drawn, in nats. */
  readonly oldLogProbs: tf.Tensor1D;
  /** float32 [N], their log-probs under the model without its adapter, in nats; null for a model without a base. */
  readonly baseLogProbs: tf.Tensor1D | null;
  readonly teacher: TeacherTop;
}

/** The metrics besides the loss, each a mean over positions. */
const partNames = ["distill_loss", "kl_reg", "mean_is_ratio", "clip_fraction", "student_log_prob"] as const;

export type SDPOPart = (typeof partNames)[number];

export interface SDPOLoss {
  /** Once differentiable in the logits. */
  readonly loss: tf.Scalar;
  /**
   * Sums over positions: the two parts of the loss (`kl_reg` before its weight, omitted for a model without a base), the
   * importance ratio after clipping, whether it was clipped, log p of the drawn token.
   */
  readonly sums: Readonly<Partial<Record<SDPOPart, tf.Scalar>>>;
}

/**
 * Returns the loss of self-distillation policy optimization (Hübotter et al. 2026, arXiv 2601.20802), summed over N
 * positions. With s the student's log p of the drawn token, s_old its value at sampling, and D of `divergence`:
 *
 *     loss = min(exp(clamp(s − s_old, ±20)), isClip) · D + klRegWeight · (exp(d) − 1 − d)
 *
 * The ratio has no gradient. d = clamp(base − s, ±20) for `k3`, an unbiased estimate of KL(student ‖ base) on tokens that
 * the student drew; clamp(s − base, ±20) for `claas`, as in kfallah/CLaaS.
 *
 * The gradient by the logits has a closed form: K + 1 entries per position and a multiple of softmax − one-hot. It is computed
 * together with the loss, in chunks of rows, and only when a gradient is taken.
 *
 * @param logits float32 [N, V], N ≥ 1.
 * @param bytes Maximum size of a chunk of the logits. Default 16 MB.
 * @returns The caller disposes the loss and `sums`, which outlive a surrounding `tf.tidy`. NaN or Inf in, NaN or Inf out.
 */
export function sdpoLossSum(
  logits: tf.Tensor2D,
  scored: ScoredResponses,
  options: SDPOLossOptions,
  bytes = chunkBytes,
): SDPOLoss {
  const isTaken = tf.engine().isTapeOn();
  const result: { parts?: tf.Tensor1D } = {};
  const summed = tf.customGrad((x, save) => {
    const chunks = mapRowChunks(
      x as tf.Tensor2D,
      (chunk, select) => {
        const { loss, parts, gradient } = chunkLoss(chunk, selectScored(scored, select), options);
        const totals = tf.stack([tf.sum(loss), ...parts.map((each) => tf.sum(each))]);
        return isTaken ? [totals, gradient()] : [totals];
      },
      bytes,
    );
    const totals = chunks.map(([each]) => each!).reduce((sum, each) => tf.add(sum, each));
    if (isTaken) {
      const gradients = chunks.map((each) => each[1] as tf.Tensor2D);
      const gradient = gradients.length === 1 ? gradients[0]! : tf.concat(gradients);
      (save as (tensors: tf.Tensor[]) => void)([gradient]);
    }
    result.parts = tf.keep(tf.slice(totals, 1) as tf.Tensor1D);
    return {
      value: tf.sum<tf.Scalar>(tf.slice(totals, 0, 1)),
      gradFunc: (dy: tf.Scalar, [gradient]: tf.Tensor[]) => tf.mul(gradient!, dy),
    };
  });
  try {
    const loss = summed(logits);
    const values = tf.unstack(result.parts!).map((each) => tf.keep(each) as tf.Scalar);
    const names = partNames.filter((name) => name !== "kl_reg" || scored.baseLogProbs !== null);
    return { loss, sums: Object.fromEntries(names.map((name, i) => [name, values[i]!])) };
  } finally {
    result.parts?.dispose();
  }
}

interface ChunkLoss {
  /** [n]. */
  readonly loss: tf.Tensor1D;
  /** In the order of `partNames`, each [n]; without `kl_reg` for a model without a base. */
  readonly parts: readonly tf.Tensor1D[];
  /** Returns the gradient of Σ loss, [n, V]. */
  readonly gradient: () => tf.Tensor2D;
}

/** Computes the loss of n rows. */
function chunkLoss(
  logits: tf.Tensor2D,
  { targets, oldLogProbs, baseLogProbs, teacher }: ScoredResponses,
  { alpha, isClip, klRegWeight, klForm }: SDPOLossOptions,
): ChunkLoss {
  const ofTargets = targetLosses(logits, targets);
  const student = tf.neg<tf.Tensor1D>(ofTargets.losses);
  const unclipped = tf.exp(tf.clipByValue(tf.sub(student, oldLogProbs), -maxLogRatio, maxLogRatio));
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
      // The derivative of s by the logits is one-hot − softmax.
      const through = tf.neg(tf.reshape(tf.addN(slopes), [-1, 1]));
      const ofStudent = tf.mul<tf.Tensor2D>(ofTargets.gradient(), through);
      return scattered === null ? ofStudent : tf.add(scattered, ofStudent);
    },
  };
}

/** Log-ratios are clamped to ±20; e²⁰ is half a billion. */
const maxLogRatio = 20;

/** Returns exp(d) − 1 − d and its derivative by s, which is 0 where d is clamped. */
function klEstimate(
  student: tf.Tensor1D,
  base: tf.Tensor1D,
  form: SDPOLossOptions["klForm"],
): PerPosition & { readonly slope: tf.Tensor1D } {
  const apart = tf.sub(student, base);
  const sign = form === "k3" ? -1 : 1;
  const d = tf.clipByValue<tf.Tensor1D>(tf.mul(apart, sign), -maxLogRatio, maxLogRatio);
  const over = tf.expm1(d);
  const isInside = tf.cast(tf.lessEqual(tf.abs(apart), maxLogRatio), "float32");
  return { value: tf.sub(over, d), slope: tf.mul(tf.mul(over, sign), isInside) };
}

const selectScored = (
  { targets, oldLogProbs, baseLogProbs, teacher }: ScoredResponses,
  select: SelectRows,
) => ({
  targets: select(targets),
  oldLogProbs: select(oldLogProbs),
  baseLogProbs: baseLogProbs && select(baseLogProbs),
  teacher: { logProbs: select(teacher.logProbs), ids: select(teacher.ids) },
});

/** Engines reuse memory blocks up to this size; larger ones are allocated each time, which is slow. */
const chunkBytes = 2 ** 24;

/** Selects the rows of a tensor [N, …] that belong to the current chunk. */
type SelectRows = <T extends tf.Tensor>(tensor: T) => T;

/**
 * Runs `compute` on chunks of the rows of logits [N, V], the fewest chunks of similar size that fit in `bytes`. Disposes the
 * temporaries of each chunk before the next.
 *
 * @returns The tensors of each chunk. The caller, or the surrounding `tf.tidy`, disposes them.
 */
export function mapRowChunks(
  logits: tf.Tensor2D,
  compute: (chunk: tf.Tensor2D, select: SelectRows) => tf.Tensor[],
  bytes = chunkBytes,
): tf.Tensor[][] {
  const [rows, columns] = logits.shape;
  const most = Math.max(1, Math.floor(bytes / (4 * columns)));
  const size = Math.ceil(rows / Math.ceil(rows / most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => {
    const [from, count] = [i * size, Math.min(size, rows - i * size)];
    const select: SelectRows = (tensor) => {
      if (count === rows) return tensor;
      const rest = tensor.shape.slice(1);
      return tf.slice(tensor, [from, ...rest.map(() => 0)], [count, ...rest]);
    };
    return tf.tidy(() => compute(select(logits), select));
  });
}

/** The K most likely tokens of the teacher at each of N positions. */
interface TeacherTop {
  /** float32 [N, K], in nats. */
  readonly logProbs: tf.Tensor2D;
  /** int32 [N, K], each in [0, V), distinct within a row. */
  readonly ids: tf.Tensor2D;
}

/** A quantity per position, [N]. */
interface PerPosition {
  readonly value: tf.Tensor1D;
  /** Its derivative by s, the log-prob of the drawn token; null if it does not depend on s. */
  readonly slope: tf.Tensor1D | null;
}

interface Divergence extends PerPosition {
  /** Returns the gradient of Σ weights · value by the logits [N, V]; null if the value depends on the logits only through s. */
  readonly ofLogits: ((weights: tf.Tensor1D) => tf.Tensor2D) | null;
}

interface Compared {
  /** int32 [N]. */
  readonly targets: tf.Tensor1D;
  /** float32 [N], s: the student's log p of the targets. */
  readonly student: tf.Tensor1D;
  readonly teacher: TeacherTop;
}

/** The log p of a token that is not among the teacher's K. */
const floor = -20;

/**
 * Returns the divergence of student and teacher at each position. For alpha < 1, the generalised Jensen–Shannon divergence
 *
 *     D = alpha · KL(t ‖ m) + (1 − alpha) · KL(q ‖ m),  m = alpha · t + (1 − alpha) · q
 *
 * of the teacher t and the student q over the teacher's top K tokens, with each distribution renormalised there. Its derivative by q's log-odds
 * is dD/dxₖ = qₖ(gₖ − Σ qⱼgⱼ), gₖ = (1 − alpha)(log qₖ − log mₖ): the terms in t cancel. For alpha = 1, (s − t)·s with the
 * first factor held fixed and t the teacher's log p of the drawn token, −20 if it is not among the K. This value is not a
 * distance, but its gradient is that of KL(student ‖ teacher) on drawn tokens.
 *
 * Call this function and `ofLogits` inside `tf.tidy`.
 */
const divergence = (logits: tf.Tensor2D, compared: Compared, alpha: number): Divergence =>
  alpha < 1 ? jensenShannon(logits, compared.teacher, alpha) : onDrawn(compared);

function onDrawn({ targets, student, teacher }: Compared): Divergence {
  const isDrawn = tf.equal(teacher.ids, tf.reshape(targets, [-1, 1]));
  const drawn = tf.sum<tf.Tensor1D>(tf.where(isDrawn, teacher.logProbs, tf.zerosLike(teacher.logProbs)), 1);
  const ofTeacher = tf.where(tf.any(isDrawn, 1), drawn, tf.fill(drawn.shape, floor));
  const slope = tf.sub<tf.Tensor1D>(student, ofTeacher);
  return { value: tf.mul(slope, student), slope, ofLogits: null };
}

function jensenShannon(logits: tf.Tensor2D, { logProbs, ids }: TeacherTop, alpha: number): Divergence {
  const [rows, k] = ids.shape;
  const row = tf.tile(tf.reshape(tf.range(0, rows, 1, "int32"), [rows, 1]), [1, k]);
  const at = tf.reshape(tf.stack([row, ids], 2), [rows * k, 2]);
  const logStudent = renormalized(tf.reshape(tf.gatherND(logits, at), [rows, k]));
  const logTeacher = renormalized(logProbs);
  const logMixture = logAddExp(tf.add(logTeacher, Math.log(alpha)), tf.add(logStudent, Math.log(1 - alpha)));
  const [q, t] = [tf.exp(logStudent), tf.exp(logTeacher)];
  const g = tf.mul(tf.sub(logStudent, logMixture), 1 - alpha);
  const ofStudent = tf.sum(tf.mul(q, g), 1, true);
  const ofTeacher = tf.sum(tf.mul(t, tf.mul(tf.sub(logTeacher, logMixture), alpha)), 1, true);
  return {
    value: tf.reshape(tf.add(ofTeacher, ofStudent), [rows]),
    slope: null,
    ofLogits(weights) {
      const each = tf.mul(tf.mul(q, tf.sub(g, ofStudent)), tf.reshape(weights, [rows, 1]));
      return tf.scatterND(at, tf.reshape(each, [rows * k]), logits.shape);
    },
  };
}

/** Converts log-odds [N, K] to log-probs of a distribution over the K. */
const renormalized = (x: tf.Tensor): tf.Tensor => tf.sub(x, tf.logSumExp(x, 1, true));

/** Returns log(eᵃ + eᵇ) without overflow. */
function logAddExp(a: tf.Tensor, b: tf.Tensor): tf.Tensor {
  const below = tf.neg(tf.abs(tf.sub(a, b)));
  return tf.add(tf.maximum(a, b), tf.log1p(tf.exp(below)));
}
