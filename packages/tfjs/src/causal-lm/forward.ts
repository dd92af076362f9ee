import * as tf from "@tensorflow/tfjs-core";
import { checkIds } from "@periodic-eval/tokenizers";
import type { CausalLM } from "./causal-lm.ts";
import type { Incremental } from "./incremental.ts";

/** A position whose logits are requested: index `at` in row `sequence` of the batch. */
export interface Position {
  readonly sequence: number;
  readonly at: number;
}

/** Returns the longest sequence that a model accepts, in tokens. */
export const windowLength = (lm: Pick<CausalLM, "contextLength" | "fixedLength">): number =>
  Math.min(lm.contextLength, lm.fixedLength ?? Infinity);

/**
 * Runs one forward pass in evaluation mode. N = `positions.length`, V = vocabulary. Sequences are padded on the right with id 0,
 * which does not affect earlier positions of a causal model.
 *
 * @returns Logits float32 [N, V]. The caller disposes them, or calls this inside `tf.tidy`.
 * @throws PeriodicEvalError `model` for an id outside of the model's vocabulary.
 */
export function logitsAtPositions(
  lm: CausalLM,
  sequences: readonly (readonly number[])[],
  positions: readonly Position[],
): tf.Tensor2D {
  const width = lm.fixedLength ?? Math.max(...sequences.map((ids) => ids.length));
  const padded = new Int32Array(sequences.length * width);
  sequences.forEach((ids, sequence) => {
    checkIds(ids, lm.vocabSize);
    padded.set(ids, sequence * width);
  });
  return inEvaluation(lm, () =>
    tf.tidy(() => {
      const ids = tf.tensor2d(padded, [sequences.length, width], "int32");
      const rows = tf.tensor1d(
        positions.map(({ sequence, at }) => sequence * width + at),
        "int32",
      );
      if (lm.logitsAt) return lm.logitsAt(ids, rows);
      return tf.gather(tf.reshape(lm.logits(ids), [sequences.length * width, lm.vocabSize]), rows);
    }),
  );
}

/** Returns the model's incremental reading; null if it has none or accepts sequences of one fixed length only. */
export const incrementalOf = ({ incremental, fixedLength }: CausalLM): Incremental | null =>
  fixedLength === undefined ? (incremental ?? null) : null;

/**
 * Returns the longest row, in tokens, that may be batched with shorter ones. A model with LongRoPE computes all positions of a
 * longer row differently, so the scores of a short sequence would depend on a long one in its batch.
 */
export const reachOf = (lm: CausalLM): number => incrementalOf(lm)?.reach ?? Infinity;

/** Runs a synchronous pass in evaluation mode, so that concurrent calls cannot leave each other's mode. */
export function inEvaluation<T>(lm: CausalLM, pass: () => T): T {
  const leaveEval = lm.enterEval?.();
  try {
    return pass();
  } finally {
    leaveEval?.();
  }
}
