import * as tf from "@tensorflow/tfjs-core";

/** The K most likely tokens of the teacher at each of N positions. */
export interface TeacherTop {
  /** float32 [N, K], in nats. */
  readonly logProbs: tf.Tensor2D;
  /** int32 [N, K], each in [0, V), distinct within a row. */
  readonly ids: tf.Tensor2D;
}

/** A quantity per position, [N]. */
export interface PerPosition {
  readonly value: tf.Tensor1D;
  /** Its derivative by s, the log-prob of the drawn token; null if it does not depend on s. */
  readonly slope: tf.Tensor1D | null;
}

export interface Divergence extends PerPosition {
  /** Returns the gradient of Σ weights · value by the logits [N, V]; null if the value depends on the logits only through s. */
  readonly ofLogits: ((weights: tf.Tensor1D) => tf.Tensor2D) | null;
}

export interface Compared {
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
export const divergence = (logits: tf.Tensor2D, compared: Compared, alpha: number): Divergence =>
  alpha < 1 ? jensenShannon(logits, compared.teacher, alpha) : onDrawn(compared);

function onDrawn({ targets, student, teacher }: Compared): Divergence {
  const isDrawn = tf.equal(teacher.ids, tf.reshape(targets, [-1, 1]));
  const found = tf.sum<tf.Tensor1D>(tf.where(isDrawn, teacher.logProbs, tf.zerosLike(teacher.logProbs)), 1);
  const ofTeacher = tf.where(tf.any(isDrawn, 1), found, tf.fill(found.shape, floor));
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
