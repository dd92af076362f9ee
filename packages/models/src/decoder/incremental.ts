import * as tf from "@tensorflow/tfjs-core";
import type { Extended, ExtendOptions, Incremental, TokenBlock } from "@periodic-eval/tfjs";
import { blockPlan, blockTensors } from "./block.ts";
import { BlockGraphs } from "./block-graphs.ts";
import { CachedTokens, placesAfter, type LayerCache } from "./cached-tokens.ts";
import type { DecoderDescription } from "./description.ts";
import { logitsOf } from "./forward.ts";
import { readBlock, type BlockReader } from "./read-block.ts";
import type { Decoder } from "./weights.ts";

/** An `Incremental` that holds graphs. */
export interface LiveIncremental extends Incremental {
  dispose(): void;
}

/** Returns incremental reading: forward passes over blocks of tokens with explicit positions, without gradients. */
export function incremental(description: DecoderDescription, weights: Decoder<tf.Tensor>): LiveIncremental {
  const beyond = description.layers.map(({ rotary }) => rotary?.long?.beyond ?? Infinity);
  const { keyValueHeads, headDim } = description.attention;
  const plan = blockPlan(description);
  const reader = { description, weights, plan };
  const graphs = new BlockGraphs(reader);
  return {
    // Beyond this length the rotation changes, and cached keys of a shorter sequence would be wrong.
    reach: Math.min(description.contextLength, ...beyond),
    tokenBytes: 4 * 2 * description.layers.length * keyValueHeads * headDim,
    extend: (block, options) => extend(reader, graphs, block, options),
    logitsOf: (states) => tf.tidy(() => logitsOf(description, weights, states)),
    dispose: () => graphs.dispose(),
  };
}

function extend(
  reader: BlockReader,
  graphs: BlockGraphs,
  block: TokenBlock,
  { past = [], into = null, rows, keep = false }: ExtendOptions,
): Extended {
  const { description } = reader;
  const pieces = past as readonly CachedTokens[];
  const grown = into as CachedTokens | null;
  const isKept = keep || grown !== null;
  const own = grown === null ? block : placesAfter(grown.places, block);
  let kept: readonly LayerCache[] = [];
  const states = tf.tidy(() => {
    const inputs = blockTensors(reader, block, { rows, past: pieces, into: grown, own });
    const sizes = {
      batch: block.batch,
      length: block.length,
      rows: rows.length,
      own: own.length,
      past: pieces.map(({ length }) => length),
    };
    const isShared = pieces.map(({ batch }) => batch !== block.batch);
    const read = graphs.read(inputs, isShared, sizes, isKept) ?? readBlock(reader, inputs, sizes, isKept);
    kept = read.kept;
    return read.states ?? tf.zeros<tf.Rank.R2>([0, description.hiddenSize]);
  });
  grown?.grow(block, kept);
  return { states, keyValues: isKept && grown === null ? new CachedTokens(block, kept) : null };
}
