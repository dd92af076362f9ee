import * as tf from "@tensorflow/tfjs-core";
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
  /** The number of layers; `hiddenStates` has one tensor more. */
  readonly layerCount?: number;
  /** The only length that the model accepts, if there is one: shorter rows are padded to it. */
  readonly fixedLength?: number;
  /** ids int32 [B, T], right-padded, positions from 0 → logits float32 [B, T, V]. */
  logits(ids: tf.Tensor2D): tf.Tensor3D;
  /** Logits of scored positions only: ids int32 [B, T], rows int32 [N] that index the flattened B·T → float32 [N, V]. */
  logitsAt?(ids: tf.Tensor2D, rows: tf.Tensor1D): tf.Tensor2D;
  /** Returns [B·T, width] before each layer and after the final norm: transformers' `output_hidden_states`. */
  hiddenStates?(ids: tf.Tensor2D): tf.Tensor2D[];
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

/** Returns a stream of numbers in [0, 1) for each name. */
export type NamedRandom = (name: string) => () => number;

/** The largest training pass, in sizes that determine its memory. */
export interface TrainingPassSize {
  /** Rows of the batch. */
  readonly rows: number;
  /** Tokens of each row, including padding. */
  readonly tokens: number;
  readonly activationCheckpointing: boolean;
  /** The value of `tf.getBackend()`. */
  readonly backend: string;
}

/** Bytes that a training pass needs. */
export interface TrainingPassMemory {
  /** All weights, as float32. */
  readonly weights: number;
  /** The weights that are trained, of the model or its adapter: one set of gradients has this size. */
  readonly trainables: number;
  /** Tensors that the forward pass keeps for the backward pass. */
  readonly activations: number;
  /** Temporary tensors at the peak, logits among them, and the backend's own copies of weights. */
  readonly workspace: number;
}

/** A causal language model that a trainer can train. B sequences, T tokens, N positions in the loss, V vocabulary. */
export interface TrainableLM extends CausalLM {
  /** Returns the variables in a fixed order, named as in the checkpoint. */
  trainables(): readonly tf.Variable[];
  /**
   * Returns the logits [N, V] at the positions of a loss, differentiable in the trainables.
   *
   * @param ids int32 [B, T], right-padded.
   * @param rows int32 [N], indices into the flattened B·T.
   * @param random Source of dropout masks: one named stream per place that draws.
   * @param documentStarts [B·T], for rows with several documents: the index in its row at which each token's document begins. A
   *   token attends to its own document only, and positions count from its start, so that each logit equals that of the
   *   document in a separate row. Passed only to a model that `takesDocuments`.
   */
  trainingLogits(
    ids: tf.Tensor2D,
    rows: tf.Tensor1D,
    random: NamedRandom,
    documentStarts?: Int32Array,
  ): tf.Tensor2D;
  /** Whether `trainingLogits` and `trainingLosses` accept `documentStarts`. Trainers pack documents only for such models. */
  readonly takesDocuments?: boolean;
  /**
   * Returns the negative log-likelihood of `targets` int32 [N], in nats, [N], for a model that need not hold all logits at once.
   * Each loss is differentiable in the trainables, because a trainer may weight them or sum them by row.
   */
  trainingLosses?(
    ids: tf.Tensor2D,
    rows: tf.Tensor1D,
    targets: tf.Tensor1D,
    random: NamedRandom,
    documentStarts?: Int32Array,
  ): tf.Tensor1D;
  /**
   * Turns activation checkpointing on: training passes keep only the input of each layer and run the layer again in the backward
   * pass. Losses and gradients are the same, with less memory and more time. The model calls `random` twice for each place,
   * which must return the same stream again. Returns a function that restores the previous setting.
   */
  enterActivationCheckpointing?(): () => void;
  /** Estimates the memory of a training pass from sizes alone. Without it, trainers count weights, gradients and moments only. */
  trainingMemory?(pass: TrainingPassSize): TrainingPassMemory;
  /** Writes `config.json` and safetensors in Hugging Face format, and the tokenizer's files if they are known. */
  save(folder: string): Promise<void>;
  dispose(): void;
}

/**
 * Returns an unused variable name for a weight. TensorFlow.js has one registry of variable names per process, which its
 * optimizers use, so a second model's variables get a number: `lm_head.weight#2`.
 */
export function variableName(weight: string): string {
  const { registeredVariables } = tf.engine();
  let free = weight;
  for (let model = 2; free in registeredVariables; model += 1) free = `${weight}#${model}`;
  return free;
}

/** Returns the weight's name in a checkpoint, from a variable that `variableName` named. */
export const weightName = ({ name }: Pick<tf.Variable, "name">): string => name.replace(/#\d+$/, "");
