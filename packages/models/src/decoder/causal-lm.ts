import * as tf from "@tensorflow/tfjs-core";
import {
  evaluationMode,
  type Incremental,
  type NamedRandom,
  type NamedWeight,
  type TrainableLM,
} from "@periodic-eval/tfjs";
import { modelError } from "../folder/model-error.ts";
import { readIntegersNow } from "../ops/engine-memory.ts";
import { sequencesOf, wholeSequences } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import { incremental } from "./incremental.ts";
import { forward, logitsOf, lossesOf, type ForwardOptions } from "./forward.ts";
import { trainingMemory, type SizedWeight } from "./training-memory.ts";
import { trainingPass } from "./training-pass.ts";
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
  const rates = `dropout ${dropout}${adapter ? `, adapter dropout ${adapter.dropout}` : ""}`;
  const checkAlive = () => checkWeights([...list, ...own]);
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
  const training = trainingPass({
    description,
    weights: variables,
    trainables,
    isTraining: () => !evaluation.isOn(),
    ...dropouts,
  });
  return {
    vocabSize: description.vocabSize,
    contextLength: description.contextLength,
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
      return training.run({ ids, rows, documentStarts }, random, (states, dropout) => {
        return lossesOf(description, variables, states, targets, dropout);
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

    trainingMemory: (pass) => trainingMemory(description, sizesOf(weights, trainables), pass, dropouts),

    incremental: checkedBefore(reading, checkAlive),

    enterEval: () => evaluation.enter(),
    enterActivationCheckpointing: () => training.enterActivationCheckpointing(),
    modes: () => `decoder: ${evaluation.describe()}, ${rates}`,
    weights: () => list,
    trainables: () => trainables,
    dispose() {
      reading.dispose();
      training.dispose();
      for (const variable of trainables) variable.dispose();
    },
  };
}

function sizesOf(weights: Decoder<LiveWeight>, trainables: readonly tf.Variable[]): Decoder<SizedWeight> {
  const own = new Set(trainables);
  return mapWeights(weights, ({ variable }) => ({ shape: variable.shape, isTrained: own.has(variable) }));
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
  const place = {
    where: "token ids",
    fix: "Use this model's tokenizer, and truncate sequences to its context.",
  };
  const [batch, length] = ids.shape;
  if (batch === 0 || length === 0 || length > contextLength) {
    const expected = `at least one sequence of 1 to ${contextLength} tokens`;
    throw modelError({ ...place, got: `[${batch}, ${length}]`, expected });
  }
  // The webgpu backend reads rows outside the table as zeros, so ids on it need no check.
  const outside = readIntegersNow(ids)?.find((id) => !(id >= 0 && id < vocabSize));
  if (outside !== undefined)
    throw modelError({ ...place, got: `id ${outside}`, expected: `ids from 0 to ${vocabSize - 1}` });
}
