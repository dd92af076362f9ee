import * as tf from "@tensorflow/tfjs-core";
import type { TrainingRow } from "./render-row.ts";

/** A batch of rows, the input of a loss. B rows, T tokens, N scored positions. */
export interface Batch {
  /** [B, T], right-padded with 0: attention is causal, so that padding affects no scored position. */
  readonly ids: Int32Array;
  readonly shape: readonly [B: number, T: number];
  /** [N], positions in the flattened B·T whose logits predict a scored token: one before each token. */
  readonly rows: Int32Array;
  /** [N], the predicted tokens. */
  readonly targets: Int32Array;
  /** Tokens in the input, without padding. */
  readonly tokens: number;
  /** [B·T], as in `TrainableLM.trainingLogits`; null if every row is one document. */
  readonly documentStarts: Int32Array | null;
}

/** The properties of a row that a batch needs. */
export interface Collatable extends Pick<TrainingRow, "ids" | "scored"> {
  /** Positions at which its documents begin, ascending from 0. If omitted, the row is one document. */
  readonly starts?: readonly number[];
}

/** Builds a batch. T is the longest row without its last token, which predicts nothing; or `fixedLength` if given. */
export function collate(rows: readonly Collatable[], fixedLength?: number): Batch {
  const length = fixedLength ?? Math.max(...rows.map(({ ids }) => ids.length - 1));
  const ids = new Int32Array(rows.length * length);
  const documentStarts = new Int32Array(rows.length * length);
  const scored: number[] = [];
  const targets: number[] = [];
  let tokens = 0;
  for (const [i, row] of rows.entries()) {
    const fed = row.ids.subarray(0, Math.min(length, row.ids.length));
    ids.set(fed, i * length);
    tokens += fed.length;
    for (const at of row.scored) {
      scored.push(i * length + at - 1);
      targets.push(row.ids[at]!);
    }
    for (const start of row.starts ?? []) {
      if (start < length) documentStarts.fill(start, i * length + start, (i + 1) * length);
    }
  }
  return {
    ids,
    shape: [rows.length, length],
    rows: Int32Array.from(scored),
    targets: Int32Array.from(targets),
    tokens,
    documentStarts: rows.some(({ starts = [] }) => starts.length > 1) ? documentStarts : null,
  };
}

/** Returns the tensors of a batch. The caller, or the surrounding `tf.tidy`, disposes them. */
export const scoredTokensOf = ({ ids, shape, rows, targets, documentStarts }: Batch) => ({
  ids: tf.tensor2d(ids, [...shape], "int32"),
  rows: tf.tensor1d(rows, "int32"),
  targets: tf.tensor1d(targets, "int32"),
  documentStarts,
});
