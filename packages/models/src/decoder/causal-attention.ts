import * as tf from "@tensorflow/tfjs-core";
import { attention, type AttentionTables } from "../ops/attention.ts";
import type { DecoderDescription } from "./description.ts";
import type { Attend, Tokens } from "./forward.ts";
import { documentTables } from "./documents.ts";
import { attentionTables } from "./tables.ts";

/** B sequences of T tokens, as tensors. */
export interface Sequences {
  /** int32 [B·T]. */
  readonly ids: tf.Tensor1D;
  /** int32 [B·T]: rows in the table of learned positions, which count from its offset in each sequence. */
  readonly positions: tf.Tensor1D;
  /** One entry per layer; equal layers share one. */
  readonly tables: readonly AttentionTables[];
}

/**
 * Creates the inputs for ids int32 [B, T] with positions from 0. New tensors belong to the surrounding `tf.tidy`.
 *
 * @param documentStarts [B·T], for rows of several sequences: the place in its row at which each token's sequence begins.
 */
export function sequencesOf(
  description: DecoderDescription,
  ids: tf.Tensor2D,
  documentStarts: Int32Array | null = null,
): Sequences {
  const [batch, length] = ids.shape;
  const { heads, keyValueHeads, headDim } = description.attention;
  const tables =
    documentStarts === null
      ? attentionTables(description, length)
      : documentTables(description, documentStarts, { batch, length, heads, keyValueHeads, headDim });
  const offset = description.embedding.learnedPositions?.offset ?? 0;
  const places = Int32Array.from(
    { length: batch * length },
    (_, i) => (i % length) - (documentStarts?.[i] ?? 0) + offset,
  );
  return {
    ids: tf.reshape(ids, [batch * length]),
    positions: tf.tensor1d(places, "int32"),
    tables,
  };
}

/** Returns tokens that attend to their own sequence or document up to themselves; differentiable. */
export function wholeSequences(
  description: DecoderDescription,
  { ids, positions, tables }: Sequences,
  { batch, length }: { readonly batch: number; readonly length: number },
): Tokens {
  return { ids, positions, attend: attendBy(description, (layer) => tables[layer]!, { batch, length }) };
}

/** Returns attention with the given tables of each layer. */
export function attendBy(
  { attention: { heads, keyValueHeads, headDim } }: DecoderDescription,
  tablesOf: (layer: number) => AttentionTables,
  sizes: { readonly batch: number; readonly length: number },
): Attend {
  const shape = { ...sizes, heads, keyValueHeads, headDim };
  return (layer, query, key, value) => attention([query, key, value], tablesOf(layer), shape);
}
