import * as tf from "@tensorflow/tfjs-core";
import type { CausalLM } from "./causal-lm.ts";

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
