import type * as tf from "@tensorflow/tfjs-core";
import type { Incremental } from "./incremental.ts";

/** A weight by name. */
export interface NamedWeight {
  readonly name: string;
  /** Returns the live tensor. The caller must not dispose it. */
  read(): tf.Tensor;
}

/**
 * A causal language model on TensorFlow.js. B sequences, T tokens, N scored positions, V vocabulary. The caller disposes
 * returned tensors.
 */
export interface CausalLM {
  /** The model's name in snapshots. Default: `in-memory`. */
  readonly name?: string;
  readonly vocabSize: number;
  /** Longest sequence in tokens. */
  readonly contextLength: number;
  /** The only length that the model accepts, if there is one: shorter rows are padded to it. */
  readonly fixedLength?: number;
  /** ids int32 [B, T], right-padded, positions from 0 → logits float32 [B, T, V]. */
  logits(ids: tf.Tensor2D): tf.Tensor3D;
  /** Logits of scored positions only: ids int32 [B, T], rows int32 [N] that index the flattened B·T → float32 [N, V]. */
  logitsAt?(ids: tf.Tensor2D, rows: tf.Tensor1D): tf.Tensor2D;
  /** Reads token by token, or many branches at once. Without it every sequence is read whole. */
  readonly incremental?: Incremental;
  /** The same model without its adapter. */
  readonly base?: CausalLM;
  /** The adapter's name in snapshots. Default: `live` for a model with a `base`. */
  readonly adapter?: string;
  /** Leaves training mode (dropout) and returns a function that restores the previous mode. See `evaluationMode`. */
  enterEval?(): () => void;
  /**
   * Describes which parts of the model are in training mode, one line per part that has a mode. Guards compare the lines. A line
   * with the number of `enterEval` calls that were not left reveals an evaluation that forgets to leave.
   */
  modes?(): string;
  /** Returns all weights, in a fixed order. */
  weights?(): readonly NamedWeight[];
}
