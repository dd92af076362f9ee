import * as tf from "@tensorflow/tfjs-core";
import type { TokenBlock } from "@periodic-eval/tfjs";
import type { TensorSpec } from "@periodic-eval/kernels";
import type { LayerCache, Places } from "./cached-tokens.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { masked, rotaryAngles, swapOfPairs, memoized } from "./tables.ts";
import { hasNativeKernels, runNative, withFewRows } from "../ops/native.ts";
import { cachedAttention, type AttendedPiece } from "../ops/cached-attention.ts";
import { byHead, byHeadTransposed, type AttentionShape, rotate } from "../ops/attention.ts";
import { repeatedColumns } from "../ops/select.ts";
import { finalStates, type Attend } from "./forward.ts";
import type { Decoder } from "./weights.ts";

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

/** The result of reading a block. */
export interface ReadBlock {
  /** float32 [M, hidden]; null if no rows are requested. */
  readonly states: tf.Tensor2D | null;
  /** The cache of the block and the tokens that it extends, by layer, kept beyond any `tf.tidy`. Empty if not requested. */
  readonly kept: readonly LayerCache[];
}

/** The parts of a decoder that reading blocks needs. */
export interface BlockReader {
  readonly description: DecoderDescription;
  readonly weights: Decoder<tf.Tensor>;
  readonly plan: BlockPlan;
}

/** Runs a block through all layers, as a function of tensors only. Other new tensors belong to the surrounding `tf.tidy`. */
export function readBlock(
  { description, weights, plan }: BlockReader,
  inputs: BlockInputs<tf.Tensor>,
  { batch, length }: { readonly batch: number; readonly length: number },
  isKept: boolean,
): ReadBlock {
  const { heads, keyValueHeads, headDim } = description.attention;
  const shape = { batch, length, heads, keyValueHeads, headDim };
  const caches: LayerCache[] = [];
  try {
    const states = withFewRows(length === 1, () =>
      finalStates(
        description,
        weights,
        {
          ids: inputs.ids as tf.Tensor1D,
          positions: inputs.positions as tf.Tensor1D,
          attend: attention(description, plan, inputs, shape, isKept ? caches : null),
        },
        { rows: (inputs.rows ?? tf.zeros([0])) as tf.Tensor1D },
      ),
    );
    return { states: inputs.rows === null ? null : states, kept: caches };
  } catch (error) {
    tf.dispose(caches);
    throw error;
  }
}

function attention(
  description: DecoderDescription,
  plan: BlockPlan,
  inputs: BlockInputs<tf.Tensor>,
  shape: AttentionShape,
  caches: LayerCache[] | null,
): Attend {
  const { heads, keyValueHeads, softCap } = description.attention;
  const rotationOf = memoized((rotary: RotaryDescription) => {
    const angles = inputs.rotaries[plan.rotaries.indexOf(rotary)]!;
    return {
      key: rotation(angles, rotary, keyValueHeads, 1),
      query: memoized((scale: number) => rotation(angles, rotary, heads, scale)),
    };
  });
  // Created before the first layer, because each layer disposes its own tensors.
  const placed = description.layers.map(({ rotary, scoreScale }) => {
    if (rotary === null) {
      return { query: (x: tf.Tensor2D) => tf.mul<tf.Tensor2D>(x, scoreScale), key: (x: tf.Tensor2D) => x };
    }
    const { query, key } = rotationOf(rotary);
    return { query: query(scoreScale), key };
  });
  return (layer, query, key, value) => {
    const rotations = placed[layer]!;
    const fresh = {
      keys: byHeadTransposed(rotations.key(key), shape, keyValueHeads),
      values: byHead(value, shape, keyValueHeads),
    };
    const before = inputs.into?.[layer];
    const all = before === undefined ? fresh : joined(before as LayerCache, fresh);
    if (caches !== null) caches.push({ keys: tf.keep(all.keys), values: tf.keep(all.values) });
    const mask = inputs.masks[plan.windows.indexOf(description.layers[layer]!.window)]!;
    const pieces = [
      ...inputs.past.map((layers, piece) => ({ ...layers[layer]!, mask: mask.past[piece]! })),
      { ...all, mask: mask.own },
    ];
    return cachedAttention(rotations.query(query), pieces as AttendedPiece[], softCap, shape);
  };
}

function joined(before: LayerCache, after: LayerCache): LayerCache {
  return {
    keys: tf.concat3d([before.keys, after.keys], 2),
    values: tf.concat3d([before.values, after.values], 1),
  };
}

/** Returns a function that rotates x [N, heads·D] by the positions of the block's tokens, and scales it. */
function rotation(
  { cosines, sines, swap }: BlockRotary<tf.Tensor>,
  { pairs, frequencies }: RotaryDescription,
  heads: number,
  scale: number,
): (x: tf.Tensor2D) => tf.Tensor2D {
  // The kernel rotates halves.
  if (pairs === "halves" && hasNativeKernels()) {
    const parameters = { pairs: frequencies.length, scale };
    return (x) => runNative("PeriodicRotate", [x, cosines, sines], parameters) as tf.Tensor2D;
  }
  // Repeated for each head, because backends combine equal shapes faster than they broadcast.
  const table = (angles: tf.Tensor) =>
    repeatedColumns((scale === 1 ? angles : tf.mul(angles, scale)) as tf.Tensor2D, heads);
  const tables = { cosines: table(cosines), sines: table(sines), swap: swap as tf.Tensor2D };
  return (x) => rotate(x, tables);
}
