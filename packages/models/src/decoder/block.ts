import type { TokenBlock } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import type { TensorSpec } from "../graph/trace.ts";
import type { LayerCache, Places } from "./cached-tokens.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { masked, rotaryAngles, swapOfPairs } from "./tables.ts";

/**
 * The inputs of the layers for a block of B rows of T tokens, N = B·T, and for the tokens before it. X is the type of each
 * leaf: a tensor, or something that stands for one.
 */
export interface BlockInputs<X> {
  /** int32 [N]. */
  readonly ids: X;
  /** int32 [N]: rows in the table of learned positions, for models that have one. */
  readonly positions: X;
  /** int32 [M]: the tokens whose states are requested. Null for none. */
  readonly rows: X | null;
  /** In the order of `BlockPlan.windows`. */
  readonly masks: readonly BlockMasks<X>[];
  /** In the order of `BlockPlan.rotaries`. */
  readonly rotaries: readonly BlockRotary<X>[];
  /** Cached pieces, and in each its layers. */
  readonly past: readonly (readonly KeysAndValues<X>[])[];
  /** The cached tokens that the block extends, by layer. */
  readonly into: readonly KeysAndValues<X>[] | null;
}

/** float32 [B, T·P] for a piece of P tokens: 0 if one token attends to another, else very negative. Null: all zeros. */
export interface BlockMasks<X> {
  readonly past: readonly (X | null)[];
  /** The mask over the extended tokens and the block itself. */
  readonly own: X | null;
}

/** float32 [N, D], [N, D], [D, D]. */
export interface BlockRotary<X> {
  readonly cosines: X;
  readonly sines: X;
  readonly swap: X;
}

/** float32 [b·G, D, P] and [b·G, P, D]; b is B, or 1 if all rows share them. */
export interface KeysAndValues<X> {
  readonly keys: X;
  readonly values: X;
}

/** The distinct windows and rotations of the layers. */
export interface BlockPlan {
  readonly windows: readonly (number | null)[];
  readonly rotaries: readonly RotaryDescription[];
}

export function blockPlan({ layers }: DecoderDescription): BlockPlan {
  return {
    windows: [...new Set(layers.map(({ window }) => window))],
    rotaries: [...new Set(layers.flatMap(({ rotary }) => (rotary === null ? [] : [rotary])))],
  };
}

/** Tokens that were read before. */
type Cached = { readonly places: Places; readonly layers: readonly LayerCache[] };

export interface BlockSurroundings {
  /** The tokens whose states are requested. */
  readonly rows: readonly number[];
  readonly past: readonly Cached[];
  /** The cached tokens that the block extends. */
  readonly into: Cached | null;
  /** The places of `into` and the block together. */
  readonly own: Places;
}

/** Creates the tensors of a block. They belong to the surrounding `tf.tidy`, except those of cached tokens. */
export function blockTensors(
  { description, plan }: { readonly description: DecoderDescription; readonly plan: BlockPlan },
  block: TokenBlock,
  { rows, past, into, own }: BlockSurroundings,
): BlockInputs<tf.Tensor> {
  const { headDim } = description.attention;
  const offset = description.embedding.learnedPositions?.offset ?? 0;
  return {
    ids: tf.tensor1d(block.ids, "int32"),
    positions: tf.tensor1d(
      block.positions.map((position) => position + offset),
      "int32",
    ),
    rows: rows.length === 0 ? null : tf.tensor1d([...rows], "int32"),
    masks: plan.windows.map((window) => ({
      past: past.map(({ places }) => maskOf(block, places, window)),
      own: maskOf(block, own, window),
    })),
    rotaries: plan.rotaries.map((rotary) => {
      const { cosines, sines } = rotaryAngles(rotary, headDim, block.positions);
      const shape: [number, number] = [block.positions.length, headDim];
      return {
        cosines: tf.tensor2d(cosines, shape),
        sines: tf.tensor2d(sines, shape),
        swap: swapOfPairs(headDim, rotary),
      };
    }),
    past: past.map(({ layers }) => layers),
    into: into?.layers ?? null,
  };
}

/** The sizes of a block: B, T, M, the tokens of `own` and of each piece. */
export interface BlockSizes {
  readonly batch: number;
  readonly length: number;
  readonly rows: number;
  readonly own: number;
  readonly past: readonly number[];
}

/** Returns the types and shapes of a block like `like` with other sizes. */
export function blockSpecs(
  { attention: { keyValueHeads, headDim } }: DecoderDescription,
  like: BlockInputs<tf.Tensor>,
  isShared: readonly boolean[],
  { batch, length, rows, own, past }: BlockSizes,
): BlockInputs<TensorSpec> {
  const integers = (size: number): TensorSpec => ({ type: "int32", shape: [size] });
  const floats = (...shape: number[]): TensorSpec => ({ type: "float32", shape });
  const ofLayers = (layers: readonly unknown[], rows: number, tokens: number) =>
    layers.map(() => {
      const cells = rows * keyValueHeads;
      return { keys: floats(cells, headDim, tokens), values: floats(cells, tokens, headDim) };
    });
  const angles = floats(batch * length, headDim);
  return {
    ids: integers(batch * length),
    positions: integers(batch * length),
    rows: like.rows && integers(rows),
    masks: like.masks.map((mask) => ({
      past: mask.past.map((piece, i) => piece && floats(batch, length * past[i]!)),
      own: mask.own && floats(batch, length * own),
    })),
    rotaries: like.rotaries.map(() => ({ cosines: angles, sines: angles, swap: floats(headDim, headDim) })),
    past: like.past.map((layers, i) => ofLayers(layers, isShared[i]! ? 1 : batch, past[i]!)),
    into: like.into && ofLayers(like.into, batch, own - length),
  };
}

/** Applies `convert` to every leaf. */
export function mapInputs<X, Y>(tree: BlockInputs<X>, convert: (leaf: X) => Y): BlockInputs<Y> {
  const orNull = (leaf: X | null): Y | null => (leaf === null ? null : convert(leaf));
  const both = ({ keys, values }: KeysAndValues<X>) => ({ keys: convert(keys), values: convert(values) });
  return {
    ids: convert(tree.ids),
    positions: convert(tree.positions),
    rows: orNull(tree.rows),
    masks: tree.masks.map(({ past, own }) => ({ past: past.map(orNull), own: orNull(own) })),
    rotaries: tree.rotaries.map(({ cosines, sines, swap }) => ({
      cosines: convert(cosines),
      sines: convert(sines),
      swap: convert(swap),
    })),
    past: tree.past.map((layers) => layers.map(both)),
    into: tree.into && tree.into.map(both),
  };
}

/** Lists the leaves in the order of `mapInputs`. */
export function listInputs<X>(tree: BlockInputs<X>): readonly X[] {
  const list: X[] = [];
  mapInputs(tree, (leaf) => list.push(leaf));
  return list;
}

/** Returns [B, T·P]: 0 if a token of the block attends to one of `keys`, else very negative. Null: all zeros. */
function maskOf(block: TokenBlock, keys: Places, window: number | null): tf.Tensor2D | null {
  const { batch, length } = block;
  const mask = new Float32Array(batch * length * keys.length);
  let isNeeded = false;
  for (let row = 0; row < batch; row++) {
    const first = keys.batch === 1 ? 0 : row * keys.length;
    for (let token = 0; token < length; token++) {
      const at = row * length + token;
      const [position, segment] = [block.positions[at]!, block.segments[at]!];
      // Nothing reads the result of padding, so it may attend to anything.
      if (segment < 0) continue;
      for (let key = 0; key < keys.length; key++) {
        const isBefore = keys.segments[first + key]! <= segment && segment <= keys.lastSegments[first + key]!;
        const distance = position - keys.positions[first + key]!;
        const isAttended = isBefore && distance >= 0 && (window === null || distance < window);
        if (isAttended) continue;
        isNeeded = true;
        mask[at * keys.length + key] = masked;
      }
    }
  }
  return isNeeded ? tf.tensor2d(mask, [batch, length * keys.length]) : null;
}
