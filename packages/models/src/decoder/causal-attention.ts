import * as tf from "@tensorflow/tfjs-core";
import { attention, type AttentionTables, type AttentionShape } from "../ops/attention.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import type { Attend, Tokens } from "./forward.ts";
import { attentionTables, masked, rotaryAngles, tablesOf } from "./tables.ts";

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

/**
 * Returns the tables of each layer for rows of several documents; `attentionTables` does so for one sequence per row. A
 * token attends only to its own document, and lengths are those of the document. Creates new tensors.
 *
 * @param starts [B·T]: the place in its row at which each token's document begins.
 */
function documentTables(
  description: DecoderDescription,
  starts: Int32Array,
  shape: AttentionShape,
): AttentionTables[] {
  const { batch, length, headDim } = shape;
  const documents = documentsOf(starts, length);
  return tablesOf(description, {
    longest: Math.max(...documents.map(({ tokens }) => tokens)),
    angles: (rotary) => anglesOf(rotary, headDim, documents, batch * length),
    table: (values, heads) => ofHeads(tf.tensor3d(values, [batch, length, headDim]), heads),
    mask: (window) => ofHeads(documentMask(starts, window, shape), shape.heads),
  });
}

interface Document {
  /** Index of its first token among the B·T tokens. */
  readonly first: number;
  readonly tokens: number;
}

function documentsOf(starts: Int32Array, length: number): readonly Document[] {
  const documents: { first: number; tokens: number }[] = [];
  for (const [i, start] of starts.entries())
    if (start === i % length) documents.push({ first: i, tokens: 1 });
    else documents.at(-1)!.tokens += 1;
  return documents;
}

function anglesOf(
  rotary: RotaryDescription,
  headDim: number,
  documents: readonly Document[],
  tokens: number,
): { readonly cosines: Float32Array; readonly sines: Float32Array } {
  const cosines = new Float32Array(tokens * headDim);
  const sines = new Float32Array(tokens * headDim);
  for (const { first, tokens: count } of documents) {
    const angles = rotaryAngles(
      rotary,
      headDim,
      Int32Array.from({ length: count }, (_, position) => position),
    );
    cosines.set(angles.cosines, first * headDim);
    sines.set(angles.sines, first * headDim);
  }
  return { cosines, sines };
}

/** Returns [B, T, T]: a token attends to itself and earlier tokens of its document, at most `window` tokens in total. */
function documentMask(
  starts: Int32Array,
  window: number | null,
  { batch, length }: AttentionShape,
): tf.Tensor3D {
  const mask = new Float32Array(batch * length * length).fill(masked);
  for (const [i, start] of starts.entries()) {
    const position = i % length;
    const from = window === null ? start : Math.max(start, position + 1 - window);
    mask.fill(0, i * length + from, i * length + position + 1);
  }
  return tf.tensor3d(mask, [batch, length, length]);
}

/** Repeats for each head: x [B, T, X] → [B·heads, T, X]. Engines combine equal shapes faster than they broadcast. */
function ofHeads(x: tf.Tensor3D, heads: number): tf.Tensor3D {
  const [batch, length, size] = x.shape;
  return tf.tidy(() => {
    const tiled = tf.tile(tf.reshape(x, [batch, 1, length, size]), [1, heads, 1, 1]);
    return tf.reshape(tiled, [batch * heads, length, size]);
  });
}
