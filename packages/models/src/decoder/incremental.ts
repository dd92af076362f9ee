import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { Extended, ExtendOptions, Incremental, TokenBlock } from "@periodic-eval/core/tfjs";
import { cachedAttention, type AttendedPiece } from "../ops/cached-attention.ts";
import { byHead, type AttentionShape } from "../ops/heads.ts";
import { rotate } from "../ops/rotary.ts";
import { CachedTokens, placesBehind, type LayerCache, type Places } from "./cached-tokens.ts";
import type { DecoderDescription, RotaryDescription } from "./description.ts";
import { finalStates, logitsOf, type Attend } from "./forward.ts";
import { once, rotaryAngles, swapOfHalves, unseen } from "./tables.ts";
import type { Decoder } from "./weights.ts";

/** Reading tokens whose places are told one by one; without gradients. */
export function incremental(description: DecoderDescription, weights: Decoder<tf.Variable>): Incremental {
  const beyond = description.layers.map(({ rotary }) => rotary?.long?.beyond ?? Infinity);
  return {
    // What rotates otherwise in long sequences is not what was kept of a short one.
    reach: Math.min(description.contextLength, ...beyond),
    extend: (block, options) => extend(description, weights, block, options),
    logitsOf: (states) => tf.tidy(() => logitsOf(description, weights, states)),
  };
}

function extend(
  description: DecoderDescription,
  weights: Decoder<tf.Variable>,
  block: TokenBlock,
  { past = [], into = null, rows, keep = false }: ExtendOptions,
): Extended {
  checkPositions(block, description);
  const pieces = past as readonly CachedTokens[];
  const grown = into as CachedTokens | null;
  const kept: LayerCache[] = [];
  const isKept = keep || grown !== null;
  let states: tf.Tensor2D;
  try {
    states = tf.tidy(() => {
      const tokens = {
        ids: tf.tensor1d(block.ids, "int32"),
        positions: tf.tensor1d(block.positions, "int32"),
        attend: attention(description, block, pieces, grown, isKept ? kept : null),
      };
      return finalStates(description, weights, tokens, { rows: tf.tensor1d([...rows], "int32") });
    });
  } catch (error) {
    tf.dispose(kept);
    throw error;
  }
  grown?.grow(block, kept);
  return { states, keyValues: isKept && grown === null ? new CachedTokens(block, kept) : null };
}

/**
 * Who sees whom in a block after what was read before. What the layers keep goes into `kept`, and is then the caller's;
 * the tables belong to the surrounding `tf.tidy`.
 */
function attention(
  description: DecoderDescription,
  block: TokenBlock,
  past: readonly CachedTokens[],
  into: CachedTokens | null,
  kept: LayerCache[] | null,
): Attend {
  const { heads, keyValueHeads, headDim, softCap } = description.attention;
  const shape = { batch: block.batch, length: block.length, heads, keyValueHeads, headDim };
  const own = into === null ? block : placesBehind(into.places, block);
  const masks = once((window: number | null) => ({
    past: past.map(({ places }) => maskOf(block, places, window)),
    own: maskOf(block, own, window),
  }));
  const turning = once((rotary: RotaryDescription) => rotation(rotary, block, shape));
  // Made before the first layer, whose own tensors go when it is over.
  for (const { window, rotary } of description.layers) {
    masks(window);
    if (rotary !== null) turning(rotary);
  }
  return (layer, query, key, value) => {
    const { window, rotary, scoreScale } = description.layers[layer]!;
    const turn = rotary === null ? null : turning(rotary);
    const scaled = tf.mul<tf.Tensor2D>(turn === null ? query : turn(query, "query"), scoreScale);
    const fresh = {
      keys: byHead(turn === null ? key : turn(key, "key"), shape, keyValueHeads),
      values: byHead(value, shape, keyValueHeads),
    };
    const before = into?.layer(layer);
    const all =
      before === undefined
        ? fresh
        : {
            keys: tf.concat3d([before.keys, fresh.keys], 1),
            values: tf.concat3d([before.values, fresh.values], 1),
          };
    if (kept !== null) kept.push({ keys: tf.keep(all.keys), values: tf.keep(all.values) });
    const mask = masks(window);
    const pieces: AttendedPiece[] = past.map((piece, index) => ({
      ...piece.layer(layer),
      mask: mask.past[index]!,
    }));
    return cachedAttention(scaled, [...pieces, { ...all, mask: mask.own }], softCap, shape);
  };
}

/** Turns x [B·T, h·D] by the places of the block's tokens. */
function rotation(
  rotary: RotaryDescription,
  { positions }: TokenBlock,
  { heads, keyValueHeads, headDim }: AttentionShape,
): (x: tf.Tensor2D, of: "query" | "key") => tf.Tensor2D {
  const { cosines, sines } = rotaryAngles(rotary, headDim, positions);
  const swap = swapOfHalves(headDim, rotary.frequencies.length);
  // Repeated for each head: an engine multiplies what is alike in shape faster than what it must spread.
  const table = (heads: number) => {
    const tiled = (values: Float32Array) =>
      tf.tile(tf.tensor2d(values, [positions.length, headDim]), [1, heads]);
    return { cosines: tiled(cosines), sines: tiled(sines), swap };
  };
  const tables = { query: table(heads), key: table(keyValueHeads) };
  return (x, of) => rotate(x, tables[of]);
}

/** [B, T·P]: 0 where a token of the block sees one of `keys`, very negative where not; null where each sees all. */
function maskOf(block: TokenBlock, keys: Places, window: number | null): tf.Tensor2D | null {
  const { batch, length } = block;
  const mask = new Float32Array(batch * length * keys.length);
  let isNeeded = false;
  for (let row = 0; row < batch; row++) {
    const first = keys.batch === 1 ? 0 : row * keys.length;
    for (let token = 0; token < length; token++) {
      const at = row * length + token;
      const [position, segment] = [block.positions[at]!, block.segments[at]!];
      // What nobody sees may look at anything.
      if (segment < 0) continue;
      for (let key = 0; key < keys.length; key++) {
        const other = keys.segments[first + key]!;
        const distance = position - keys.positions[first + key]!;
        const isSeen =
          (other === 0 || other === segment) && distance >= 0 && (window === null || distance < window);
        if (isSeen) continue;
        isNeeded = true;
        mask[at * keys.length + key] = unseen;
      }
    }
  }
  return isNeeded ? tf.tensor2d(mask, [batch, length * keys.length]) : null;
}

function checkPositions({ positions, segments }: TokenBlock, { contextLength }: DecoderDescription): void {
  const at = positions.findIndex((position, index) => segments[index]! >= 0 && position >= contextLength);
  if (at === -1) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "token positions",
    got: `position ${positions[at]}`,
    expected: `positions from 0 to ${contextLength - 1}`,
    fix: "Cut sequences to the model's context.",
  });
}
