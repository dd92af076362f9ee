import * as tf from "@tensorflow/tfjs-core";
import { blockOf, type KeyValues } from "@periodic-eval/tfjs";
import type { CheckpointLM } from "../checkpoint/model.ts";

/** Returns the logits [T·V] of a sequence read through the cache: first three tokens, then one token at a time. */
export function readByToken({ incremental }: CheckpointLM, ids: readonly number[]): Float32Array {
  const pieces: Float32Array[] = [];
  const read = (from: number, to: number, into: KeyValues | null): KeyValues | null => {
    const places = Array.from({ length: to - from }, (_, i) => from + i);
    const block = blockOf([ids.slice(from, to)], from);
    const rows = places.map((_, i) => i);
    const { states, keyValues } = incremental.extend(block, { rows, into, keep: into === null });
    const logits = incremental.logitsOf(states);
    pieces.push(logits.dataSync() as Float32Array);
    tf.dispose([states, logits]);
    return keyValues;
  };
  const cache = read(0, 3, null)!;
  for (let at = 3; at < ids.length; at++) read(at, at + 1, cache);
  cache.dispose();
  return Float32Array.from(pieces.flatMap((piece) => [...piece]));
}
