import * as tf from "@tensorflow/tfjs-core";
import type { Sizes } from "@periodic-eval/kernels";
import type { AttentionTables, RotaryTables } from "../ops/attention.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";

/** The mask value: low enough that its exponential is 0 next to any score, and finite, so that products with it are not NaN. */
export const masked = -1e9;

/**
 * Returns the tables of each layer for sequences of `length` tokens with positions from 0; equal layers share one. The
 * caller disposes the new tensors. They are not cached, because a count of tensors would report the cache as a leak.
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

/** The arrangement of tokens that the tables depend on. */
export interface Layout {
  /** The length of the longest sequence, in tokens. */
  readonly longest: number;
  /** Returns the cosines and sines of all tokens, [N, headDim] each. */
  angles(rotary: RotaryDescription): { readonly cosines: Float32Array; readonly sines: Float32Array };
  /** Returns values of `angles` as the tensor that multiplies queries or keys of `heads` heads. */
  table(values: Float32Array, heads: number): tf.Tensor;
  mask(window: number | null): tf.Tensor;
}

/** Returns the tables of each layer as new tensors; equal layers share one. */
export function tablesOf(description: DecoderDescription, layout: Layout): AttentionTables[] {
  const { heads, keyValueHeads, headDim, softCap } = description.attention;
  const mask = memoized(layout.mask);
  const angles = memoized(layout.angles);
  const swap = memoized((rotary: RotaryDescription) => swapOfPairs(headDim, rotary));
  const rotaryOf = memoized((rotary: RotaryDescription) => {
    const tables = (scale: number, heads: number): RotaryTables => {
      const { cosines, sines } = angles(rotary);
      const table = (values: Float32Array) =>
        layout.table(
          values.map((value) => value * scale),
          heads,
        );
      return { cosines: table(cosines), sines: table(sines), swap: swap(rotary) };
    };
    return {
      query: memoized((scale: number) => tables(scale, heads)),
      key: memoized(() => tables(1, keyValueHeads)),
    };
  });
  return description.layers.map(({ window, rotary, scoreScale }) => ({
    rotary: rotary && { query: rotaryOf(rotary).query(scoreScale), key: rotaryOf(rotary).key(null) },
    scale: scoreScale,
    softCap,
    // A window has no effect if no sequence is longer.
    mask: mask(window !== null && window < layout.longest ? window : null),
  }));
}

/**
 * Returns cosines and sines of the rotation at these positions, [N, headDim] each, times the factor; 1 and 0 for dimensions
 * without rotation. `sequenceLength` is the length of the whole sequence, if it is longer than the positions imply.
 */
export function rotaryAngles(
  rotary: RotaryDescription,
  headDim: number,
  positions: ArrayLike<number>,
  sequenceLength = 0,
): { readonly cosines: Float32Array; readonly sines: Float32Array } {
  const { frequencies, long, factor } = rotary;
  const pairAt = pairsOf(rotary);
  let end = sequenceLength;
  for (let row = 0; row < positions.length; row++) end = Math.max(end, positions[row]! + 1);
  const used = (long !== null && end > long.beyond ? long.frequencies : frequencies).map(Math.fround);
  const cosines = new Float32Array(positions.length * headDim).fill(1);
  const sines = new Float32Array(positions.length * headDim);
  for (let row = 0; row < positions.length; row++) {
    const start = row * headDim;
    for (let i = 0; i < used.length; i++) {
      // Rounds to float32 like the reference: at late positions the rounding of the angle matters.
      const angle = Math.fround(positions[row]! * used[i]!);
      const [a, b] = pairAt(i);
      cosines[start + a] = cosines[start + b] = Math.cos(angle) * factor;
      sines[start + a] = sines[start + b] = Math.sin(angle) * factor;
    }
  }
  return { cosines, sines };
}

/** Returns `RotaryTables.swap`. */
export function swapOfPairs(headDim: number, rotary: RotaryDescription): tf.Tensor2D {
  const pairAt = pairsOf(rotary);
  const matrix = new Float32Array(headDim * headDim);
  for (const i of rotary.frequencies.keys()) {
    const [a, b] = pairAt(i);
    matrix[b * headDim + a] = -1;
    matrix[a * headDim + b] = 1;
  }
  return tf.tensor2d(matrix, [headDim, headDim]);
}

/** Returns a function that returns the two dimensions of pair i. */
function pairsOf({ pairs, frequencies }: RotaryDescription): (i: number) => readonly [number, number] {
  return pairs === "halves" ? (i) => [i, i + frequencies.length] : (i) => [2 * i, 2 * i + 1];
}

/** Returns [T, T]: a token attends to itself and earlier tokens, at most `window` tokens in total. */
function causalMask(length: number, window: number | null): tf.Tensor2D {
  const mask = new Float32Array(length * length);
  for (let row = 0; row < length; row++) {
    const start = row * length;
    mask.fill(masked, start + row + 1, start + length);
    if (window !== null) mask.fill(masked, start, start + Math.max(0, row + 1 - window));
  }
  return tf.tensor2d(mask, [length, length]);
}

/** Caches the results of a function by its argument. */
export function memoized<K, V>(make: (key: K) => V): (key: K) => V {
  const results = new Map<K, V>();
  return (key) => {
    if (!results.has(key)) results.set(key, make(key));
    return results.get(key)!;
  };
}

export interface TracedSizes extends Sizes {
  readonly batch: number;
  readonly length: number;
  readonly rows: number;
}

/** Applies `convert` to each distinct tensor of the tables; `shapeOf` returns its shape for other sizes. */
export function mapTables(
  { heads, keyValueHeads }: DecoderDescription["attention"],
  tables: readonly AttentionTables[],
  convert: (table: tf.Tensor, shapeOf: (sizes: TracedSizes) => number[]) => tf.Tensor,
): AttentionTables[] {
  // Rows of several documents have separate tables for each head of each row.
  const first = (table: tf.Tensor, { batch }: TracedSizes, count: number) =>
    table.rank === 3 ? [batch * count] : [];
  const ofSwap = memoized((table: tf.Tensor) => convert(table, () => table.shape) as tf.Tensor2D);
  const ofAngles = (count: number) =>
    memoized((table: tf.Tensor) =>
      convert(table, (sizes) => [...first(table, sizes, count), sizes.length, table.shape.at(-1)!]),
    );
  const [ofQueries, ofKeys] = [ofAngles(heads), ofAngles(keyValueHeads)];
  const ofMask = memoized((table: tf.Tensor) =>
    convert(table, (sizes) => [...first(table, sizes, heads), sizes.length, sizes.length]),
  );
  const ofRotary = ({ cosines, sines, swap }: RotaryTables, angles: typeof ofQueries): RotaryTables => ({
    cosines: angles(cosines),
    sines: angles(sines),
    swap: ofSwap(swap),
  });
  return tables.map(({ rotary, mask, ...rest }) => ({
    ...rest,
    rotary: rotary && { query: ofRotary(rotary.query, ofQueries), key: ofRotary(rotary.key, ofKeys) },
    mask: ofMask(mask),
  }));
}

/** Lists the distinct tensors of the tables, and describes which layers share them; short sequences need no windows. */
export function listTables(
  attention: DecoderDescription["attention"],
  tables: readonly AttentionTables[],
): { readonly list: readonly tf.Tensor[]; readonly layout: string } {
  const list: tf.Tensor[] = [];
  mapTables(attention, tables, (table) => {
    list.push(table);
    return table;
  });
  const layout = tables.map(({ rotary, mask }) =>
    [mask, rotary?.query.cosines, rotary?.key.cosines].map((table) => (table ? list.indexOf(table) : "")),
  );
  return { list, layout: [...layout, ...list.map(({ rank }) => rank)].join(" ") };
}
