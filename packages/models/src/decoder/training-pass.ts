import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom } from "@periodic-eval/tfjs";
import { gradientsOf, isDifferentiated } from "../ops/differentiable.ts";
import { dropoutMask } from "../ops/dropout.ts";
import { recomputed } from "../ops/recomputed.ts";
import { attendBy, sequencesOf, wholeSequences, type Sequences } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import { finalStates, type Dropout, type Through } from "./forward.ts";
import { listTables, mapTables } from "./tables.ts";
import { TrainingGraphs } from "./training-graphs.ts";
import { listWeights, type Decoder } from "./weights.ts";

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
export function trainingPass(parts: TrainingPassParts) {
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
    const own = [tables[index]!];
    const beside = [rows, ...listTables(attention, own).list];
    return recomputed({ x, weights: listWeights(weights.layers[index]!), beside }, (x, [rows, ...list]) => {
      const next = list.values();
      const [again] = mapTables(attention, own, () => next.next().value!);
      return run(x, { attend: attendBy(description, () => again!, sizes), rows: rows as tf.Tensor1D });
    });
  };
