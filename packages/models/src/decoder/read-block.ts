import * as tf from "@tensorflow/tfjs-core";
import { cachedAttention, type AttendedPiece } from "../ops/cached-attention.ts";
import { byHead, byHeadTransposed, type AttentionShape } from "../ops/heads.ts";
import { rotate } from "../ops/rotary.ts";
import type { BlockPlan, BlockRotary, BlockInputs } from "./block.ts";
import type { LayerCache } from "./cached-tokens.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { finalStates, type Attend } from "./forward.ts";
import { once } from "./tables.ts";
import type { Decoder } from "./weights.ts";

/** What reading a block gives. */
export interface ReadBlock {
  /** float32 [M, hidden]; null where no rows are wanted. */
  readonly states: tf.Tensor2D | null;
  /** Of what the block is the end of, by layer; kept, whatever `tf.tidy` surrounds this. Empty where not wanted. */
  readonly kept: readonly LayerCache[];
}

/** What reads blocks. */
export interface BlockReader {
  readonly description: DecoderDescription;
  readonly weights: Decoder<tf.Tensor>;
  readonly plan: BlockPlan;
}

/** A block through all layers, as a function of tensors alone. What else it makes belongs to the surrounding `tf.tidy`. */
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
    const states = finalStates(
      description,
      weights,
      {
        ids: inputs.ids as tf.Tensor1D,
        positions: inputs.positions as tf.Tensor1D,
        attend: attention(description, plan, inputs, shape, isKept ? kept : null),
      },
      { rows: (inputs.rows ?? tf.zeros([0])) as tf.Tensor1D },
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
  const turnOf = once((rotary: RotaryDescription) => {
    const angles = inputs.rotaries[plan.rotaries.indexOf(rotary)]!;
    return {
      key: rotation(angles, keyValueHeads, 1),
      query: once((scale: number) => rotation(angles, heads, scale)),
    };
  });
  // Made before the first layer, whose own tensors go when it is over.
  const placed = description.layers.map(({ rotary, scoreScale }) => {
    if (rotary === null) {
      return { query: (x: tf.Tensor2D) => tf.mul<tf.Tensor2D>(x, scoreScale), key: (x: tf.Tensor2D) => x };
    }
    const { query, key } = turnOf(rotary);
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

/** Turns x [N, heads·D] by the places of the block's tokens, and scales it. */
function rotation(
  { cosines, sines, swap }: BlockRotary<tf.Tensor>,
  heads: number,
  scale: number,
): (x: tf.Tensor2D) => tf.Tensor2D {
  // Repeated for each head: an engine multiplies what is alike in shape faster than what it must spread.
  const table = (angles: tf.Tensor) => {
    const scaled = scale === 1 ? angles : tf.mul(angles, scale);
    return tf.tile(scaled as tf.Tensor2D, [1, heads]);
  };
  const tables = { cosines: table(cosines), sines: table(sines), swap: swap as tf.Tensor2D };
  return (x) => rotate(x, tables);
}
