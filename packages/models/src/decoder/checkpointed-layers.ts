import type * as tf from "@tensorflow/tfjs-core";
import { recomputed } from "../ops/recomputed.ts";
import { attendBy } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import type { Through } from "./forward.ts";
import { listTables, mapTables } from "./map-tables.ts";
import type { AttentionTables } from "../ops/attention.ts";
import { listLayer, type Decoder } from "./weights.ts";

export interface CheckpointedOptions {
  /** One entry per layer. */
  readonly tables: readonly AttentionTables[];
  readonly rows: tf.Tensor1D;
  readonly batch: number;
  readonly length: number;
}

/**
 * Runs layers and keeps only the input of each for the backward pass, which runs the layer again. The backward pass draws
 * the same dropout masks from restarted streams.
 */
export const checkpointedLayers =
  (
    description: DecoderDescription,
    weights: Decoder<tf.Tensor>,
    { tables, rows, ...sizes }: CheckpointedOptions,
  ): Through =>
  (index, x, run) => {
    const { attention } = description;
    const own = [tables[index]!];
    const beside = [rows, ...listTables(attention, own).list];
    return recomputed({ x, weights: listLayer(weights.layers[index]!), beside }, (x, [rows, ...list]) => {
      const next = list.values();
      const [again] = mapTables(attention, own, () => next.next().value!);
      return run(x, { attend: attendBy(description, () => again!, sizes), rows: rows as tf.Tensor1D });
    });
  };
