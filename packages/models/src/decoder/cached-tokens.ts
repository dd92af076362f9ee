import * as tf from "@tensorflow/tfjs-core";
import type { KeyValues, TokenBlock } from "@periodic-eval/tfjs";
import { rowsAt } from "../ops/select.ts";

/** Keys and values of one layer, float32 [B·G, D, P] and [B·G, P, D]. */
// `tf.tidy` accepts a type alias as a container of tensors, but not an interface.
export type LayerCache = {
  readonly keys: tf.Tensor3D;
  readonly values: tf.Tensor3D;
};

/** The positions and segments of tokens, without their ids. */
export type Places = Pick<TokenBlock, "batch" | "length" | "positions" | "segments" | "lastSegments">;

/** The keys and values of tokens in each layer, and the places of these tokens. */
export class CachedTokens implements KeyValues {
  #places: Places;
  #layers: readonly LayerCache[];

  constructor(places: Places, layers: readonly LayerCache[]) {
    this.#places = places;
    this.#layers = layers;
  }

  get batch(): number {
    return this.#places.batch;
  }

  get length(): number {
    return this.#places.length;
  }

  get places(): Places {
    return this.#places;
  }

  get layers(): readonly LayerCache[] {
    return this.#layers;
  }

  /** Replaces the layers by ones that also contain a block after these tokens, and disposes the old ones. */
  grow(by: Places, layers: readonly LayerCache[]): void {
    this.#places = placesAfter(this.#places, by);
    const old = this.#layers;
    this.#layers = layers;
    for (const { keys, values } of old) tf.dispose([keys, values]);
  }

  select(rows: readonly number[]): CachedTokens {
    const places = this.#places;
    const { batch, length } = places;
    const taken = (key: PlaceKey) =>
      joinedRows(rows.map((row) => places[key].subarray(row * length, (row + 1) * length)));
    const ofRows = (x: tf.Tensor3D): tf.Tensor3D =>
      tf.tidy(() => {
        const [cells, ...cell] = x.shape;
        const perRow = tf.reshape<tf.Rank.R2>(x, [batch, x.size / batch]);
        const selected = rowsAt(perRow, tf.tensor1d([...rows], "int32"));
        return tf.reshape<tf.Rank.R3>(selected, [(cells / batch) * rows.length, ...cell]);
      });
    return new CachedTokens(
      placesOf(rows.length, length, taken),
      this.#replaceLayers([], ({ keys, values }) => ({ keys: ofRows(keys), values: ofRows(values) })),
    );
  }

  append(later: KeyValues): CachedTokens {
    const other = later as CachedTokens;
    return new CachedTokens(
      placesAfter(this.#places, other.#places),
      this.#replaceLayers([other], ({ keys, values }, index) => ({
        keys: tf.concat3d([keys, other.#layers[index]!.keys], 2),
        values: tf.concat3d([values, other.#layers[index]!.values], 1),
      })),
    );
  }

  stack(below: readonly KeyValues[]): CachedTokens {
    const caches = below as readonly CachedTokens[];
    const all = [this, ...caches];
    const none: [number, number] = [0, 0];
    const longest = Math.max(...all.map(({ length }) => length));
    const ofAll = (key: keyof LayerCache, layer: number): tf.Tensor3D =>
      tf.tidy(() => {
        const padded = all.map(({ length, layers }) => {
          const behind: [number, number] = [0, longest - length];
          return tf.pad3d(layers[layer]![key], key === "keys" ? [none, none, behind] : [none, behind, none]);
        });
        return tf.concat3d(padded, 0);
      });
    return new CachedTokens(
      placesBelow(
        all.map(({ places }) => places),
        longest,
      ),
      this.#replaceLayers(caches, (_, layer) => ({
        keys: ofAll("keys", layer),
        values: ofAll("values", layer),
      })),
    );
  }

  /** Makes new layers, and disposes those that they replace, of this cache and of others; all of them if one fails for lack of memory. */
  #replaceLayers(
    caches: readonly CachedTokens[],
    make: (layer: LayerCache, index: number) => LayerCache,
  ): readonly LayerCache[] {
    const replaced = [this, ...caches];
    const created: LayerCache[] = [];
    try {
      this.#layers.forEach((layer, index) => {
        created.push(tf.tidy(() => make(layer, index)));
        for (const { layers } of replaced) tf.dispose(layers[index]);
      });
    } catch (error) {
      tf.dispose(created);
      for (const cache of replaced) cache.dispose();
      throw error;
    }
    return created;
  }

  dispose(): void {
    for (const { keys, values } of this.#layers) tf.dispose([keys, values]);
  }
}

type PlaceKey = "positions" | "segments" | "lastSegments";

const placesOf = (batch: number, length: number, of: (key: PlaceKey) => Int32Array): Places => ({
  batch,
  length,
  positions: of("positions"),
  segments: of("segments"),
  lastSegments: of("lastSegments"),
});

/** Appends the second piece to the first, row by row. */
export function placesAfter(first: Places, second: Places): Places {
  const interleaved = (key: PlaceKey) =>
    joinedRows(
      Array.from({ length: first.batch }, (_, row) => [
        first[key].subarray(row * first.length, (row + 1) * first.length),
        second[key].subarray(row * second.length, (row + 1) * second.length),
      ]).flat(),
    );
  return placesOf(first.batch, first.length + second.length, interleaved);
}

/** Stacks the rows of pieces, padded to a length. */
function placesBelow(pieces: readonly Places[], length: number): Places {
  const padded = (key: PlaceKey) =>
    joinedRows(
      pieces.flatMap((piece) =>
        Array.from({ length: piece.batch }, (_, row) => {
          const out = new Int32Array(length).fill(key === "positions" ? 0 : -1);
          out.set(piece[key].subarray(row * piece.length, (row + 1) * piece.length));
          return out;
        }),
      ),
    );
  const batch = pieces.reduce((sum, piece) => sum + piece.batch, 0);
  return placesOf(batch, length, padded);
}

function joinedRows(rows: readonly Int32Array[]): Int32Array {
  const out = new Int32Array(rows.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const row of rows) {
    out.set(row, at);
    at += row.length;
  }
  return out;
}
