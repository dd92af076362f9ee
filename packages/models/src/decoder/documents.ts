import { PeriodicEvalError } from "@periodic-eval/core";
import * as tf from "@tensorflow/tfjs-core";
import type { AttentionTables } from "../ops/attention.ts";
import type { AttentionShape } from "../ops/heads.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { rotaryAngles, tablesOf, unseen } from "./tables.ts";

/**
 * The tables of each layer for rows that hold documents one after the other, as `attentionTables` makes those of one a
 * row: a token sees its own document alone, and what depends on a sequence's length depends on its document's. New tensors.
 *
 * @param starts [B·T]: of each token, the place in its row at which its document begins
 * @throws PeriodicEvalError `model` for starts that are none.
 */
export function documentTables(
  description: DecoderDescription,
  starts: Int32Array,
  shape: AttentionShape,
): AttentionTables[] {
  const { batch, length, headDim } = shape;
  const documents = documentsOf(starts, shape);
  return tablesOf(description, {
    longest: Math.max(...documents.map(({ tokens }) => tokens)),
    angles: (rotary) => anglesOf(rotary, headDim, documents, batch * length),
    table: (values, heads) => ofHeads(tf.tensor3d(values, [batch, length, headDim]), heads),
    mask: (window) => ofHeads(documentMask(starts, window, shape), shape.heads),
  });
}

interface Document {
  /** Index of its first token among the B·T. */
  readonly first: number;
  readonly tokens: number;
}

function documentsOf(starts: Int32Array, { batch, length }: AttentionShape): readonly Document[] {
  if (starts.length !== batch * length) throw wrongStarts(`${starts.length} of them`, `${batch * length}`);
  const documents: { first: number; tokens: number }[] = [];
  for (const [i, start] of starts.entries()) {
    const place = i % length;
    if (start === place) documents.push({ first: i, tokens: 1 });
    else if (place > 0 && start === starts[i - 1]) documents.at(-1)!.tokens += 1;
    else
      throw wrongStarts(
        `${start} at token ${place} of row ${Math.floor(i / length)}`,
        "its own place, or the start of the token before",
      );
  }
  return documents;
}

function wrongStarts(got: string, expected: string): PeriodicEvalError {
  const fix = "Give each token the place in its row at which its document begins.";
  return new PeriodicEvalError({ code: "model", where: "documentStarts", got, expected, fix });
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
    const own = rotaryAngles(
      rotary,
      headDim,
      Int32Array.from({ length: count }, (_, position) => position),
    );
    cosines.set(own.cosines, first * headDim);
    sines.set(own.sines, first * headDim);
  }
  return { cosines, sines };
}

/** [B, T, T]: each sees itself and those before it in its document, `window` tokens in all where that is not null. */
function documentMask(
  starts: Int32Array,
  window: number | null,
  { batch, length }: AttentionShape,
): tf.Tensor3D {
  const mask = new Float32Array(batch * length * length).fill(unseen);
  for (const [i, start] of starts.entries()) {
    const place = i % length;
    const from = window === null ? start : Math.max(start, place + 1 - window);
    mask.fill(0, i * length + from, i * length + place + 1);
  }
  return tf.tensor3d(mask, [batch, length, length]);
}

/** x [B, T, X] → [B·heads, T, X]: an engine adds and multiplies what is alike in shape faster than what it must spread. */
function ofHeads(x: tf.Tensor3D, heads: number): tf.Tensor3D {
  const [batch, length, size] = x.shape;
  return tf.tidy(() => {
    const tiled = tf.tile(tf.reshape(x, [batch, 1, length, size]), [1, heads, 1, 1]);
    return tf.reshape(tiled, [batch * heads, length, size]);
  });
}
