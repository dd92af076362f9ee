import type * as tf from "@tensorflow/tfjs-core";
import type { Incremental } from "./incremental.ts";

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

/** The evaluation mode of a model that also has a training mode. Entries nest, and each must be left. */
export interface EvaluationMode {
  /** Whether the model is in evaluation mode. */
  isOn(): boolean;
  /**
   * Enters evaluation mode, as `CausalLM.enterEval` does. The returned function leaves it, together with all later entries that
   * were not left.
   */
  enter(): () => void;
  /** Describes the mode for `CausalLM.modes`, with the number of entries if there are several. */
  describe(): string;
}

/** Returns a mode that begins in training mode. */
export function evaluationMode(): EvaluationMode {
  let open = 0;
  return {
    isOn: () => open > 0,
    enter() {
      const before = open;
      open += 1;
      // An entry that is left after the one around it has nothing left to close.
      return () => void (open = Math.min(open, before));
    },
    describe: () =>
      open > 1 ? `evaluation (entered ${open} times)` : open === 1 ? "evaluation" : "training",
  };
}
