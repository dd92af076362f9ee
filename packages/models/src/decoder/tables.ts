import * as tf from "@tensorflow/tfjs-core";
import type { AttentionTables } from "../ops/attention.ts";
import type { RotaryTables } from "../ops/rotary.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";

/** Low enough that its exponential is 0 beside any score, and finite, so that no product of it is NaN. */
export const unseen = -1e9;

/**
 * The tables of each layer for sequences of `length` tokens, positions from 0; layers that are alike share theirs. New
 * tensors, which the caller disposes: kept ones would look like a leak to whoever counts tensors over the first pass.
 */
export function attentionTables(description: DecoderDescription, length: number): AttentionTables[] {
  const { headDim } = description.attention;
  const positions = Int32Array.from({ length }, (_, position) => position);
  return tablesOf(description, {
    longest: length,
    angles: (rotary) => rotaryAngles(rotary, headDim, positions),
    table: (values) => tf.tensor2d(values, [length, headDim]),
    mask: (window) => causalMask(length, window),
  });
}

/** How tokens lie, as far as tables depend on it. */
export interface Layout {
  /** Tokens of the longest sequence. */
  readonly longest: number;
  /** Of all tokens, [N, headDim] each. */
  angles(rotary: RotaryDescription): { readonly cosines: Float32Array; readonly sines: Float32Array };
  /** Of what `angles` gives: what queries, or keys, of so many heads are multiplied by. */
  table(values: Float32Array, heads: number): tf.Tensor;
  mask(window: number | null): tf.Tensor;
}

/** The tables of each layer; layers that are alike share theirs. New tensors. */
export function tablesOf(description: DecoderDescription, layout: Layout): AttentionTables[] {
  const { heads, keyValueHeads, headDim, softCap } = description.attention;
  const mask = once(layout.mask);
  const angles = once(layout.angles);
  const swap = once((pairs: number) => swapOfHalves(headDim, pairs));
  const rotaryOf = once((rotary: RotaryDescription) => {
    const tables = (scale: number, heads: number): RotaryTables => {
      const { cosines, sines } = angles(rotary);
      const table = (values: Float32Array) =>
        layout.table(
          values.map((value) => value * scale),
          heads,
        );
      return { cosines: table(cosines), sines: table(sines), swap: swap(rotary.frequencies.length) };
    };
    return {
      query: once((scale: number) => tables(scale, heads)),
      key: once(() => tables(1, keyValueHeads)),
    };
  });
  return description.layers.map(({ window, rotary, scoreScale }) => ({
    rotary: rotary && { query: rotaryOf(rotary).query(scoreScale), key: rotaryOf(rotary).key(null) },
    scale: scoreScale,
    softCap,
    // A window that no sequence outgrows is none.
    mask: mask(window !== null && window < layout.longest ? window : null),
  }));
}

/**
 * Cosines and sines of what tokens at these positions rotate by, [N, headDim] each, the factor included; 1 and 0 where a
 * dimension does not rotate. `sequenceLength`: of the sequence that they belong to, where it is longer than they show.
 */
export function rotaryAngles(
  { frequencies, long, factor }: RotaryDescription,
  headDim: number,
  positions: ArrayLike<number>,
  sequenceLength = 0,
): { readonly cosines: Float32Array; readonly sines: Float32Array } {
  let end = sequenceLength;
  for (let row = 0; row < positions.length; row++) end = Math.max(end, positions[row]! + 1);
  const used = (long !== null && end > long.beyond ? long.frequencies : frequencies).map(Math.fround);
  const pairs = used.length;
  const cosines = new Float32Array(positions.length * headDim).fill(1);
  const sines = new Float32Array(positions.length * headDim);
  for (let row = 0; row < positions.length; row++) {
    for (let i = 0; i < pairs; i++) {
      // Rounded to float32 as the reference does: at long positions the angle's own rounding shows.
      const angle = Math.fround(positions[row]! * used[i]!);
      const at = row * headDim + i;
      cosines[at] = cosines[at + pairs] = Math.cos(angle) * factor;
      sines[at] = sines[at + pairs] = Math.sin(angle) * factor;
    }
  }
  return { cosines, sines };
}

/** See `RotaryTables.swap`. */
export function swapOfHalves(headDim: number, pairs: number): tf.Tensor2D {
  const matrix = new Float32Array(headDim * headDim);
  for (let i = 0; i < pairs; i++) {
    matrix[(i + pairs) * headDim + i] = -1;
    matrix[i * headDim + i + pairs] = 1;
  }
  return tf.tensor2d(matrix, [headDim, headDim]);
}

/** [T, T]: row sees itself and those before it, `window` tokens in all where that is not null. */
function causalMask(length: number, window: number | null): tf.Tensor2D {
  const mask = new Float32Array(length * length);
  for (let row = 0; row < length; row++) {
    const start = row * length;
    mask.fill(unseen, start + row + 1, start + length);
    if (window !== null) mask.fill(unseen, start, start + Math.max(0, row + 1 - window));
  }
  return tf.tensor2d(mask, [length, length]);
}

/** The function, made to give what it gave before where it is asked the same. */
export function once<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key)!;
  };
}
