import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative, withFewRows } from "../native-kernels/native-kernels.ts";
import { cachedAttention, type AttendedPiece } from "../ops/cached-attention.ts";
import { byHead, byHeadTransposed, type AttentionShape } from "../ops/heads.ts";
import { rotate } from "../ops/rotary.ts";
import { repeatedColumns } from "../ops/select.ts";
import type { BlockPlan, BlockRotary, BlockInputs } from "./block.ts";
import type { LayerCache } from "./cached-tokens.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { finalStates, type Attend } from "./forward.ts";
import { memoized } from "./tables.ts";
import type { Decoder } from "./weights.ts";

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
  const kept: LayerCache[] = [];
  try {
    const states = withFewRows(length === 1, () =>
      finalStates(
        description,
        weights,
        {
          ids: inputs.ids as tf.Tensor1D,
          positions: inputs.positions as tf.Tensor1D,
          attend: attention(description, plan, inputs, shape, isKept ? kept : null),
        },
        { rows: (inputs.rows ?? tf.zeros([0])) as tf.Tensor1D },
      ),
    );
    return { states: inputs.rows === null ? null : states, kept };
  } catch (error) {
    tf.dispose(kept);
    throw error;
  }
}

function attention(
  description: DecoderDescription,
  plan: BlockPlan,
  inputs: BlockInputs<tf.Tensor>,
  shape: AttentionShape,
  kept: LayerCache[] | null,
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
    const place = placed[layer]!;
    const fresh = {
      keys: byHeadTransposed(place.key(key), shape, keyValueHeads),
      values: byHead(value, shape, keyValueHeads),
    };
    const before = inputs.into?.[layer];
    const all = before === undefined ? fresh : joined(before as LayerCache, fresh);
    if (kept !== null) kept.push({ keys: tf.keep(all.keys), values: tf.keep(all.values) });
    const mask = inputs.masks[plan.windows.indexOf(description.layers[layer]!.window)]!;
    const pieces = [
      ...inputs.past.map((layers, piece) => ({ ...layers[layer]!, mask: mask.past[piece]! })),
      { ...all, mask: mask.own },
    ];
    return cachedAttention(place.query(query), pieces as AttendedPiece[], softCap, shape);
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
