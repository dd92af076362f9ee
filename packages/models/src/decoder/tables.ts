import * as tf from "@tensorflow/tfjs-core";
import type { AttentionTables } from "../ops/attention.ts";
import type { DecoderDescription } from "./description.ts";

/** Low enough that its exponential is 0 beside any score, and finite, so that no product of it is NaN. */
const unseen = -1e9;

/**
 * The tables that all layers share for sequences of `length` tokens, positions from 0. New tensors, which the caller
 * disposes: kept ones would look like a leak to whoever counts tensors over the first pass.
 */
export function attentionTables(description: DecoderDescription, length: number): AttentionTables {
  const { headDim, scale } = description.attention;
  const { frequencies } = description.rotary;
  const half = headDim / 2;
  const cosines = new Float32Array(length * headDim);
  const sines = new Float32Array(length * headDim);
  for (let position = 0; position < length; position++) {
    for (let i = 0; i < headDim; i++) {
      // Rounded to float32 as the reference does: at long positions the angle's own rounding shows.
      const angle = Math.fround(position * Math.fround(frequencies[i % half]!));
      cosines[position * headDim + i] = Math.cos(angle);
      sines[position * headDim + i] = Math.sin(angle);
    }
  }
  const scaled = (values: Float32Array) =>
    tf.tensor2d(
      values.map((value) => value * scale),
      [length, headDim],
    );
  const swap = swapOfHalves(headDim);
  return {
    query: { cosines: scaled(cosines), sines: scaled(sines), swap },
    key: {
      cosines: tf.tensor2d(cosines, [length, headDim]),
      sines: tf.tensor2d(sines, [length, headDim]),
      swap,
    },
    mask: causalMask(length),
  };
}

function swapOfHalves(headDim: number): tf.Tensor2D {
  const half = headDim / 2;
  const matrix = new Float32Array(headDim * headDim);
  for (let i = 0; i < half; i++) {
    matrix[(i + half) * headDim + i] = -1;
    matrix[i * headDim + i + half] = 1;
  }
  return tf.tensor2d(matrix, [headDim, headDim]);
}

function causalMask(length: number): tf.Tensor2D {
  const mask = new Float32Array(length * length);
  for (let row = 0; row < length; row++) mask.fill(unseen, row * length + row + 1, (row + 1) * length);
  return tf.tensor2d(mask, [length, length]);
}
