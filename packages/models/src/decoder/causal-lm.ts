import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  evaluationMode,
  type NamedRandom,
  type NamedWeight,
  type TrainableLM,
} from "@periodic-eval/core/tfjs";
import { gradientsOf, isDifferentiated } from "../ops/differentiable.ts";
import { dropoutMask } from "../ops/dropout.ts";
import { checkpointedLayers } from "./checkpointed-layers.ts";
import { sequencesOf, wholeSequences } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import { incremental } from "./incremental.ts";
import { finalStates, forward, logitsOf, lossesOf, type Dropout, type ForwardOptions } from "./forward.ts";
import { TrainingGraphs } from "./training-graphs.ts";
import { listWeights, mapWeights, type Decoder } from "./weights.ts";

/** A weight of a model, as a variable. */
export interface LiveWeight extends NamedWeight {
  readonly variable: tf.Variable;
  /** Whether the variable is the checkpoint's tensor transposed. */
  readonly transposed: boolean;
}

export interface DecoderParts {
  readonly description: DecoderDescription;
  readonly weights: Decoder<LiveWeight>;
  /** Probability in [0, 1) of dropping an addition to the residual stream in training. */
  readonly dropout: number;
  /** The weights that are trained and that the decoder disposes. Default: all weights. */
  readonly adapter?: { readonly weights: readonly LiveWeight[]; readonly dropout: number };
}

/** A decoder, to which a checkpoint adds `save`. */
export interface LiveDecoder extends Required<
  Omit<TrainableLM, "save" | "name" | "fixedLength" | "base" | "adapter" | "weights">
> {
  weights(): readonly LiveWeight[];
  /** Returns Hugging Face's `output_hidden_states`: [B·T, hidden] before each layer and after the final norm. */
  hiddenStates(ids: tf.Tensor2D): tf.Tensor2D[];
}

/** Creates a decoder on existing variables. */
export function createDecoder({ description, weights, dropout, adapter }: DecoderParts): LiveDecoder {
  const list = listWeights(weights);
  const own = adapter?.weights ?? list;
  const trainables = own.map(({ variable }) => variable);
  const variables = mapWeights(weights, ({ variable }) => variable);
  const reading = incremental(description, variables);
  const evaluation = evaluationMode();
  let checkpointing = false;
  const all = [...list, ...own];
  const checkAlive = () => {
    if (all.some(({ variable }) => variable.isDisposed)) throw disposedModel();
  };
  const check = (ids: tf.Tensor2D) => {
    checkAlive();
    checkIds(ids, description);
  };
  const sizesOf = ([batch, length]: [number, number]) => ({ batch, length });
  const run = (ids: tf.Tensor2D, options?: ForwardOptions) => {
    const tokens = wholeSequences(description, sequencesOf(description, ids), sizesOf(ids.shape));
    return forward(description, variables, tokens, options);
  };
  const graphs = new TrainingGraphs(description, variables, trainables);
  const droppingBy = (random: NamedRandom): Dropout => {
    // The mode may have changed when checkpointed layers run again.
    const isTraining = !evaluation.isOn();
    const rateAt = (place: string) => {
      if (!isTraining) return 0;
      return place.endsWith(".lora_dropout") ? (adapter?.dropout ?? 0) : dropout;
    };
    return {
      isAt: (place) => rateAt(place) > 0,
      mask: (place, shape) => dropoutMask(shape, rateAt(place), random(place)),
    };
  };
  /** Applies `head` to the states of these rows, differentiable in the trainables. */
  const inTraining = <T extends tf.Tensor>(
    { ids, rows, documentStarts }: TrainedRows,
    dropout: Dropout,
    head: (states: tf.Tensor2D) => T,
  ) =>
    gradientsOf(trainables, () =>
      tf.tidy(() => {
        const sizes = sizesOf(ids.shape);
        const sequences = sequencesOf(description, ids, documentStarts);
        const tokens = wholeSequences(description, sequences, sizes);
        // A graph outputs all tensors that its backward pass needs, so passes without gradients use operations instead.
        const usesGraphs = isDifferentiated() && !checkpointing;
        const states = usesGraphs ? graphs.states(sequences, rows, sizes, dropout) : null;
        const through = checkpointing && {
          through: checkpointedLayers(description, variables, { ...sequences, ...sizes, rows }),
        };
        return head(states ?? finalStates(description, variables, tokens, { rows, dropout, ...through }));
      }),
    );
  return {
    vocabSize: description.vocabSize,
    contextLength: description.contextLength,

    logits(ids) {
      check(ids);
      return tf.tidy(() => {
        const [batch, length] = ids.shape;
        return tf.reshape(run(ids), [batch, length, description.vocabSize]);
      });
    },

    logitsAt(ids, rows) {
      check(ids);
      return tf.tidy(() => run(ids, { rows }));
    },

    takesDocuments: true,

    trainingLogits(ids, rows, random: NamedRandom, documentStarts) {
      check(ids);
      const dropping = droppingBy(random);
      return inTraining({ ids, rows, documentStarts }, dropping, (states) => {
        return logitsOf(description, variables, states, dropping);
      });
    },

    trainingLosses(ids, rows, targets, random: NamedRandom, documentStarts) {
      check(ids);
      const dropping = droppingBy(random);
      return inTraining({ ids, rows, documentStarts }, dropping, (states) => {
        return lossesOf(description, variables, states, targets, dropping);
      });
    },

    hiddenStates(ids) {
      check(ids);
      return tf.tidy(() => {
        const states: tf.Tensor2D[] = [];
        run(ids, { observe: (hidden) => states.push(tf.clone(hidden)) });
        return states;
      });
    },

    incremental: {
      ...reading,
      extend(block, extending) {
        checkAlive();
        return reading.extend(block, extending);
      },
      logitsOf(states) {
        checkAlive();
        return reading.logitsOf(states);
      },
    },

    enterEval: () => evaluation.enter(),
    enterActivationCheckpointing() {
      const before = checkpointing;
      checkpointing = true;
      return () => {
        checkpointing = before;
      };
    },
    modes: () =>
      `decoder: ${evaluation.told()}, dropout ${dropout}${
        adapter ? `, adapter dropout ${adapter.dropout}` : ""
      }`,
    weights: () => list,
    trainables: () => trainables,
    dispose() {
      reading.dispose();
      graphs.dispose();
      for (const variable of trainables) variable.dispose();
    },
  };
}

interface TrainedRows {
  readonly ids: tf.Tensor2D;
  readonly rows: tf.Tensor1D;
  readonly documentStarts: Int32Array | undefined;
}

/** Rejects ids outside the vocabulary, for which some engines read unrelated memory and return plausible results. */
function checkIds(ids: tf.Tensor2D, { contextLength, vocabSize }: DecoderDescription): void {
  const [batch, length] = ids.shape;
  if (batch === 0 || length === 0 || length > contextLength) {
    throw wrongIds(`[${batch}, ${length}]`, `at least one sequence of 1 to ${contextLength} tokens`);
  }
  const outside = readNow(ids)?.find((id) => !(id >= 0 && id < vocabSize));
  if (outside !== undefined) throw wrongIds(`id ${outside}`, `ids from 0 to ${vocabSize - 1}`);
}

/** Returns null for ids on a GPU, which cannot be read synchronously; WebGPU reads rows outside the table as zeros. */
function readNow(ids: tf.Tensor2D): Int32Array | null {
  try {
    return ids.dataSync<"int32">();
  } catch (error) {
    if (tf.getBackend() === "webgpu") return null;
    throw error;
  }
}

/** Returns the error for a disposed model, or for an adapter whose base was disposed. */
function disposedModel(): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: "model",
    got: "a disposed model",
    expected: "a model that still has its weights",
    fix: "Dispose a model after its last use, and an adapter before its base.",
  });
}

function wrongIds(got: string, expected: string): PeriodicEvalError {
  const fix = "Use this model's tokenizer, and truncate sequences to its context.";
  return new PeriodicEvalError({ code: "model", where: "token ids", got, expected, fix });
}
