import * as tf from "@tensorflow/tfjs-core";
import type { Json } from "@periodic-eval/core";

/** Rows in the form that a training method's steps read. */
export interface TrainingRows {
  /** Tokens of each row: batches hold rows of similar length. */
  readonly lengths: readonly number[];
  /**
   * Returns the data of one optimizer step.
   *
   * @param microBatches Row numbers of each forward and backward pass.
   * @param step Completed optimizer steps before this one; seeds everything random.
   */
  work(microBatches: readonly (readonly number[])[], step: number): StepWork;
  readonly heldOut: HeldOut;
}

/** All rows of a source. */
export interface TrainingData {
  /** Returns the rows with these numbers, and batches of only them. Packing joins them. */
  select(rows: readonly number[]): TrainingRows;
  /** Hash of everything that the steps learn from, in order; a resume with other data is an error. */
  readonly hash: string;
  /** Further facts, by name, that must be equal for an exact resume. */
  readonly exact?: Readonly<Record<string, Json>>;
  /** Stores results that were expensive to compute, for a resume. Called after every check has passed. */
  keep?(): Promise<void>;
}

/** Validation on rows that are not trained on. */
export interface HeldOut {
  /** Hash of everything but the weights that the metrics depend on. */
  readonly hash: string;
  /**
   * Returns the method's `heldOutMetrics` over all of these rows. Runs the model forward in evaluation mode, draws nothing
   * at random, and leaves model and memory unchanged, so that training continues with the same bits.
   *
   * @param batches Row numbers of each forward pass.
   */
  measure(batches: readonly (readonly number[])[]): Promise<Readonly<Record<string, number>>>;
}

/** The data of one optimizer step. Nothing is computed until `gradients` is called. */
export interface StepWork {
  /** Divides the sums: scored tokens for SFT, pairs for DPO, response tokens for SDPO. */
  readonly divisor: number;
  /** Tokens in the model's input, without padding. */
  readonly tokens: number;
  /** File and line of each row, for error messages. */
  readonly where: readonly string[];
  gradients(): LossAndGradients;
}

/** Sums over all scored positions, and the gradients of `loss` by variable name. Whoever holds them disposes them. */
export type LossAndGradients = {
  readonly loss: tf.Scalar;
  readonly gradients: tf.NamedTensorMap;
  /** Further sums by metric name; the metric is the sum over `StepWork.divisor`, as for the loss. */
  readonly sums?: Readonly<Record<string, tf.Scalar>>;
};

/**
 * Adds up the sums and gradients of all micro-batches, so that each token or pair has the same weight as in one large batch.
 * At most two sets of gradients exist at once. The caller disposes the result.
 */
export function accumulate(microBatches: readonly (() => LossAndGradients)[]): LossAndGradients {
  return tf.tidy(() => {
    let total: LossAndGradients | null = null;
    for (const compute of microBatches) {
      const before: LossAndGradients | null = total;
      total = tf.tidy((): LossAndGradients => {
        const current = compute();
        return before === null ? current : add(before, current);
      });
      if (before !== null) tf.dispose([before.loss, before.gradients, before.sums ?? {}]);
    }
    return total!;
  });
}

const add = (a: LossAndGradients, b: LossAndGradients): LossAndGradients => ({
  loss: tf.add(a.loss, b.loss),
  gradients: addNamed(a.gradients, b.gradients),
  ...((a.sums ?? b.sums) && { sums: addNamed(a.sums ?? {}, b.sums ?? {}) }),
});

function addNamed<T extends tf.Tensor>(a: Readonly<Record<string, T>>, b: Readonly<Record<string, T>>) {
  const sums: Record<string, T> = {};
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [left, right] = [a[name], b[name]];
    sums[name] = left && right ? tf.add<T>(left, right) : tf.clone((left ?? right)!);
    // Now, not at the end: else three sets would exist.
    tf.dispose([left, right]);
  }
  return sums;
}

/** The validation of a phase. */
export interface Validation {
  /** Hash of the rows: a best value on other rows is not comparable. */
  readonly hash: string;
  /** Returns metrics under their logged names: `eval_loss`. */
  measure(): Promise<Readonly<Record<string, number>>>;
}

/** The best value of the validation metric so far. */
export interface Best {
  readonly metric: string;
  readonly value: number;
  /** Completed optimizer steps. */
  readonly step: number;
  /** Hash of the rows. */
  readonly rows: string;
}

/** Validates on rows in order of decreasing length, so that the rows of a batch have similar lengths. */
export function validationOn({ heldOut, lengths }: TrainingRows, batchSize: number): Validation {
  const sorted = Array.from(lengths.keys()).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: number[][] = [];
  for (let at = 0; at < sorted.length; at += batchSize) batches.push(sorted.slice(at, at + batchSize));
  return {
    hash: heldOut.hash,
    async measure() {
      const metrics = await heldOut.measure(batches);
      return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [evalName(name), value]));
    },
  };
}

/** Returns the name under which a validation metric is logged: `eval_loss` for `loss`. */
export const evalName = (metric: string): string => `eval_${metric}`;

const lowerIsBetter = /(loss|perplexity|rejected)$/;

/** Whether `candidate` beats `best`. A tie, NaN and Inf do not; a best of another metric or other rows always loses. */
export function isBetter(candidate: Best, best: Best | null): boolean {
  if (!Number.isFinite(candidate.value)) return false;
  if (best === null || best.metric !== candidate.metric || best.rows !== candidate.rows) return true;
  return lowerIsBetter.test(candidate.metric) ? candidate.value < best.value : candidate.value > best.value;
}
