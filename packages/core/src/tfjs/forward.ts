import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "../errors.ts";
import type { CausalLM, Incremental } from "./causal-lm.ts";

/** Logits of wanted positions: row `sequence` of the batch, position `at` in it. */
export interface Position {
  readonly sequence: number;
  readonly at: number;
}

/** Tokens of the longest sequence that a model takes. */
export const windowLength = (lm: Pick<CausalLM, "contextLength" | "fixedLength">): number =>
  Math.min(lm.contextLength, lm.fixedLength ?? Infinity);

/**
 * One forward pass in evaluation mode. N = `positions.length`, V = vocabulary. Sequences are padded on the right with
 * id 0, which a causal model does not see at the positions asked for.
 *
 * @returns logits float32 [N, V]; the caller disposes them (or calls inside `tf.tidy`).
 * @throws PeriodicEvalError `model` for an id outside the model's vocabulary.
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

/** The model's incremental reading; null where it has none, or its graph takes whole sequences of one length only. */
export const incrementalOf = ({ incremental, fixedLength }: CausalLM): Incremental | null =>
  fixedLength === undefined ? (incremental ?? null) : null;

/**
 * The longest row that is read as short ones are. In a longer one a model may read every position otherwise, as with
 * LongRoPE, so that what a short sequence is given must not depend on a long one beside it.
 */
export const reachOf = (lm: CausalLM): number => incrementalOf(lm)?.reach ?? Infinity;

/** Enters evaluation mode and leaves it within the call, so that calls that await in between cannot cross. */
export function inEvaluation<T>(lm: CausalLM, pass: () => T): T {
  const leaveEval = lm.enterEval?.();
  try {
    return pass();
  } finally {
    leaveEval?.();
  }
}

/** Backends read beyond the table, or wrap, where an id is outside it: a wrong number instead of an error. */
export function checkIds(ids: readonly number[], vocabSize: number): void {
  const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (wrong === undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "token ids",
    got: `the id ${wrong}`,
    expected: `an integer from 0 to ${vocabSize - 1}, the model's vocabulary`,
    fix: "Check that the tokenizer belongs to the model.",
  });
}
