import type * as tf from "@tensorflow/tfjs-core";

/** A weight by name. */
export interface NamedWeight {
  readonly name: string;
  /** The live tensor. The caller must not dispose it. */
  read(): tf.Tensor;
}

/**
 * A causal language model on TensorFlow.js. B sequences, T tokens, N scored positions, V vocabulary.
 * Returned tensors belong to the caller.
 */
export interface CausalLM {
  /** As it should stand in snapshots; "in-memory" where it is left out. */
  readonly name?: string;
  readonly vocabSize: number;
  readonly contextLength: number;
  /** Set where the graph takes this length only: shorter rows are padded to it. */
  readonly fixedLength?: number;
  /** ids int32 [B, T], right-padded, positions from 0 → logits float32 [B, T, V]. */
  logits(ids: tf.Tensor2D): tf.Tensor3D;
  /** The head on scored positions only: ids [B, T], rows int32 [N] indexing the flattened B·T → logits [N, V]. */
  logitsAt?(ids: tf.Tensor2D, rows: tf.Tensor1D): tf.Tensor2D;
  /** The same model without its adapter. */
  readonly base?: CausalLM;
  /** Leaves training mode (dropout); the returned function restores the mode there was. */
  enterEval?(): () => void;
  /** Whether the model is in training mode, as one line per thing that has a mode; observed by the mode guard. */
  modes?(): string;
  weights?(): readonly NamedWeight[];
}

/** A stream of numbers in [0, 1) for each name. */
export type NamedRandom = (name: string) => () => number;

/** What a trainer needs beyond measuring. */
export interface TrainableLM extends CausalLM {
  /** Variables in a fixed order, named as in the checkpoint. */
  trainables(): readonly tf.Variable[];
  /**
   * Logits at the positions that a loss needs, differentiable in the trainables: ids int32 [B, T], right-padded; rows
   * int32 [N] indexing the flattened B·T → [N, V]. `random` feeds dropout: one named stream per place that draws.
   */
  trainingLogits(ids: tf.Tensor2D, rows: tf.Tensor1D, random: NamedRandom): tf.Tensor2D;
  /** Hugging Face form: `config.json` and safetensors, with the tokenizer's files where they are known. */
  save(folder: string): Promise<void>;
  dispose(): void;
}
