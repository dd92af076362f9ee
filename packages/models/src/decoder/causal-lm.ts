import * as tf from "@tensorflow/tfjs-core";
import {
  evaluationMode,
  type Incremental,
  type NamedRandom,
  type NamedWeight,
  type TrainableLM,
  type Extended,
  type ExtendOptions,
  type TokenBlock,
} from "@periodic-eval/tfjs";
import { modelError } from "../folder/model-error.ts";
import { gradientsOf, isDifferentiated } from "../ops/differentiable.ts";
import { dropoutMask } from "../ops/arithmetic.ts";
import { readIntegersNow } from "../ops/engine-memory.ts";
import { halfOf, releaseHalf } from "../ops/half-weights.ts";
import { recomputed } from "../ops/recomputed.ts";
import { BlockGraphs } from "./block-graphs.ts";
import { blockPlan, blockTensors, readBlock, type BlockReader } from "./block.ts";
import { CachedTokens, placesAfter, type LayerCache } from "./cached-tokens.ts";
import { sequencesOf, wholeSequences, attendBy, type Sequences } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import {
  forward,
  logitsOf,
  lossesOf,
  type ForwardOptions,
  finalStates,
  type Dropout,
  type Through,
} from "./forward.ts";
import { listTables, mapTables } from "./tables.ts";
import { TrainingGraphs } from "./training-graphs.ts";
import { trainingMemory, type SizedWeight } from "./training-memory.ts";
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
  const trained = adapter?.weights ?? list;
  const trainables = trained.map(({ variable }) => variable);
  const variables = mapWeights(weights, ({ variable }) => variable);
  const reading = incremental(description, variables);
  const evaluation = evaluationMode();
  const checkAlive = () => checkWeights([...list, ...trained]);
  const check = (ids: tf.Tensor2D) => {
    checkAlive();
    checkIds(ids, description);
  };
  const run = (ids: tf.Tensor2D, options?: ForwardOptions) => {
    const [batch, length] = ids.shape;
    const tokens = wholeSequences(description, sequencesOf(description, ids), { batch, length });
    return forward(description, variables, tokens, options);
  };
  const dropouts = { dropout, adapterDropout: adapter?.dropout ?? 0 };
  const isTraining = () => !evaluation.isOn();
  const training = trainingPass({ description, weights: variables, trainables, isTraining, ...dropouts });
  return {
    vocabSize: description.vocabSize,
    contextLength: description.contextLength,
    layerCount: description.layers.length,
    takesDocuments: true,

    logits(ids) {
      check(ids);
      return tf.tidy(() => tf.reshape(run(ids), [...ids.shape, description.vocabSize]));
    },

    logitsAt(ids, rows) {
      check(ids);
      return tf.tidy(() => run(ids, { rows }));
    },

    trainingLogits(ids, rows, random: NamedRandom, documentStarts) {
      check(ids);
      return training.run({ ids, rows, documentStarts }, random, (states, dropout) =>
        logitsOf(description, variables, states, dropout),
      );
    },

    trainingLosses(ids, rows, targets, random: NamedRandom, documentStarts) {
      check(ids);
      return training.run({ ids, rows, documentStarts }, random, (states, dropout) =>
        lossesOf(description, variables, states, targets, dropout),
      );
    },

    hiddenStates(ids) {
      check(ids);
      return tf.tidy(() => {
        const states: tf.Tensor2D[] = [];
        run(ids, { observe: (hidden) => states.push(tf.clone(hidden)) });
        return states;
      });
    },

    trainingMemory: (pass) => trainingMemory(description, sizesOf(weights, trainables), pass, dropouts),

    incremental: checkedBefore(reading, checkAlive),

    enterEval: () => evaluation.enter(),
    enterActivationCheckpointing: () => training.enterActivationCheckpointing(),
    modes: () =>
      `decoder: ${evaluation.describe()}, dropout ${dropout}${adapter ? `, adapter dropout ${adapter.dropout}` : ""}`,
    weights: () => list,
    trainables: () => trainables,
    dispose() {
      reading.dispose();
      training.dispose();
      tf.dispose(trainables);
      trainables.forEach(releaseHalf);
    },
  };
}

function sizesOf(weights: Decoder<LiveWeight>, trainables: readonly tf.Variable[]): Decoder<SizedWeight> {
  const trained = new Set(trainables);
  return mapWeights(weights, ({ variable }) => ({ shape: variable.shape, isTrained: trained.has(variable) }));
}

/** Runs `check` before each use of incremental reading. */
const checkedBefore = (reading: Incremental, check: () => void): Incremental => ({
  ...reading,
  extend(block, options) {
    check();
    return reading.extend(block, options);
  },
  logitsOf(states) {
    check();
    return reading.logitsOf(states);
  },
});

/** Throws for a disposed model, or for an adapter whose base was disposed. */
function checkWeights(weights: readonly LiveWeight[]): void {
  if (!weights.some(({ variable }) => variable.isDisposed)) return;
  const fix = "Dispose a model after its last use, and an adapter before its base.";
  const expected = "a model that still has its weights";
  throw modelError({ where: "model", got: "a disposed model", expected, fix });
}

/** Rejects ids outside the vocabulary, for which some backends read unrelated memory and return plausible results. */
function checkIds(ids: tf.Tensor2D, { contextLength, vocabSize }: DecoderDescription): void {
  const details = {
    where: "token ids",
    fix: "Use this model's tokenizer, and truncate sequences to its context.",
  };
  const [batch, length] = ids.shape;
  if (batch === 0 || length === 0 || length > contextLength) {
    const expected = `at least one sequence of 1 to ${contextLength} tokens`;
    throw modelError({ ...details, got: `[${batch}, ${length}]`, expected });
  }
  // The webgpu backend reads rows outside the table as zeros, so ids on it need no check.
  const outside = readIntegersNow(ids)?.find((id) => !(id >= 0 && id < vocabSize));
  if (outside !== undefined)
    throw modelError({ ...details, got: `id ${outside}`, expected: `ids from 0 to ${vocabSize - 1}` });
}

/** An `Incremental` that holds graphs. */
interface LiveIncremental extends Incremental {
  dispose(): void;
}

/** Returns incremental reading: forward passes over blocks of tokens with explicit positions, without gradients. */
function incremental(description: DecoderDescription, weights: Decoder<tf.Tensor>): LiveIncremental {
  const beyond = description.layers.map(({ rotary }) => rotary?.long?.beyond ?? Infinity);
  const { keyValueHeads, headDim } = description.attention;
  const plan = blockPlan(description);
  const reader = { description, weights, plan };
  const graphs = new BlockGraphs(reader);
  return {
    // Beyond this length the rotation changes, and cached keys of a shorter sequence would be wrong.
    reach: Math.min(description.contextLength, ...beyond),
    tokenBytes: 4 * 2 * description.layers.length * keyValueHeads * headDim,
    extend: (block, options) => extend(reader, graphs, block, options),
    logitsOf: (states) => tf.tidy(() => logitsOf(description, withHalfHead(weights), states)),
    dispose: () => graphs.dispose(),
  };
}

/** Uses the half-width head, if there is one. */
function withHalfHead(weights: Decoder<tf.Tensor>): Decoder<tf.Tensor> {
  const { embedding, head } = weights;
  if (head === null) return { ...weights, embedding: halfOf(embedding, true) };
  return { ...weights, head: { ...head, weight: halfOf(head.weight) } };
}

function extend(
  reader: BlockReader,
  graphs: BlockGraphs,
  block: TokenBlock,
  { past = [], into = null, rows, keep = false }: ExtendOptions,
): Extended {
  const { description } = reader;
  const pieces = past as readonly CachedTokens[];
  const grown = into as CachedTokens | null;
  const isKept = keep || grown !== null;
  const own = grown === null ? block : placesAfter(grown.places, block);
  let caches: readonly LayerCache[] = [];
  const states = tf.tidy(() => {
    const inputs = blockTensors(reader, block, { rows, past: pieces, into: grown, own });
    const sizes = {
      batch: block.batch,
      length: block.length,
      rows: rows.length,
      own: own.length,
      past: pieces.map(({ length }) => length),
    };
    const isShared = pieces.map(({ batch }) => batch !== block.batch);
    const read = graphs.read(inputs, isShared, sizes, isKept) ?? readBlock(reader, inputs, sizes, isKept);
    caches = read.kept;
    return read.states ?? tf.zeros<tf.Rank.R2>([0, description.hiddenSize]);
  });
  grown?.grow(block, caches);
  return { states, keyValues: isKept && grown === null ? new CachedTokens(block, caches) : null };
}

interface TrainingPassParts {
  readonly description: DecoderDescription;
  readonly weights: Decoder<tf.Variable>;
  readonly trainables: readonly tf.Variable[];
  /** Whether dropout is on; false in evaluation mode. */
  readonly isTraining: () => boolean;
  /** Dropout rate of additions to the residual stream. */
  readonly dropout: number;
  /** Dropout rate of the inputs of adapters. */
  readonly adapterDropout: number;
}

/** The rows of a batch whose states are needed. */
interface TrainedRows {
  /** int32 [B, T]. */
  readonly ids: tf.Tensor2D;
  /** int32 [M], indices into the B·T tokens. */
  readonly rows: tf.Tensor1D;
  /** [B·T], for rows of several documents. */
  readonly documentStarts: Int32Array | undefined;
}

/** Returns the forward pass in training: with dropout, graphs where the backend runs them, and activation checkpointing. */
function trainingPass(parts: TrainingPassParts) {
  const { description, weights, trainables } = parts;
  const graphs = new TrainingGraphs(description, weights, trainables);
  let checkpointing = false;
  return {
    /** Applies `head` to the final states [M, hidden] of the rows, differentiable in the trainables. */
    run<T extends tf.Tensor>(
      { ids, rows, documentStarts }: TrainedRows,
      random: NamedRandom,
      head: (states: tf.Tensor2D, dropout: Dropout) => T,
    ): T {
      const dropout = dropoutOf(parts, random);
      // This pass is followed by new values.
      for (const variable of trainables) releaseHalf(variable);
      return gradientsOf(trainables, () =>
        tf.tidy(() => {
          const [batch, length] = ids.shape;
          const sizes = { batch, length };
          const sequences = sequencesOf(description, ids, documentStarts);
          const tokens = wholeSequences(description, sequences, sizes);
          // A graph outputs all tensors that its backward pass needs, so passes without gradients use operations instead.
          const usesGraphs = isDifferentiated() && !checkpointing;
          const states = usesGraphs ? graphs.states(sequences, rows, sizes, dropout) : null;
          const through = checkpointing && {
            through: checkpointedLayers(description, weights, { ...sequences, ...sizes, rows }),
          };
          const options = { rows, dropout, ...through };
          return head(states ?? finalStates(description, weights, tokens, options), dropout);
        }),
      );
    },
    /** Switches activation checkpointing on, and returns a function that restores the mode before. */
    enterActivationCheckpointing(): () => void {
      const before = checkpointing;
      checkpointing = true;
      return () => {
        checkpointing = before;
      };
    },
    dispose: (): void => graphs.dispose(),
  };
}

function dropoutOf({ isTraining, dropout, adapterDropout }: TrainingPassParts, random: NamedRandom): Dropout {
  // The mode may have changed when checkpointed layers run again.
  const isOn = isTraining();
  const rateAt = (place: string) => {
    if (!isOn) return 0;
    return place.endsWith(".lora_dropout") ? adapterDropout : dropout;
  };
  return {
    isAt: (place) => rateAt(place) > 0,
    mask: (place, shape) => dropoutMask(shape, rateAt(place), random(place)),
  };
}

interface CheckpointedInputs extends Pick<Sequences, "tables"> {
  readonly rows: tf.Tensor1D;
  readonly batch: number;
  readonly length: number;
}

/**
 * Runs layers and keeps only the input of each for the backward pass, which runs the layer again. The backward pass draws
 * the same dropout masks from restarted streams.
 */
const checkpointedLayers =
  (
    description: DecoderDescription,
    weights: Decoder<tf.Tensor>,
    { tables, rows, ...sizes }: CheckpointedInputs,
  ): Through =>
  (index, x, run) => {
    const { attention } = description;
    const layerTables = [tables[index]!];
    const beside = [rows, ...listTables(attention, layerTables).list];
    return recomputed({ x, weights: listWeights(weights.layers[index]!), beside }, (x, [rows, ...list]) => {
      const next = list.values();
      const [again] = mapTables(attention, layerTables, () => next.next().value!);
      return run(x, { attend: attendBy(description, () => again!, sizes), rows: rows as tf.Tensor1D });
    });
  };
