import * as tf from "@tensorflow/tfjs-core";
import { attention } from "../ops/attention.ts";
import type { DecoderDescription } from "./description.ts";
import type { Tokens } from "./forward.ts";
import { documentTables } from "./documents.ts";
import { attentionTables } from "./tables.ts";

/**
 * ids int32 [B, T], positions from 0, each token seeing its own sequence up to itself; differentiable. New tensors belong
 * to the surrounding `tf.tidy`.
 *
 * @param documentStarts [B·T] where a row holds several sequences: the place at which that of each token begins
 */
export function wholeSequences(
  description: DecoderDescription,
  ids: tf.Tensor2D,
  documentStarts: Int32Array | null = null,
): Tokens {
  const [batch, length] = ids.shape;
  const { heads, keyValueHeads, headDim } = description.attention;
  const shape = { batch, length, heads, keyValueHeads, headDim };
  const tables =
    documentStarts === null
      ? attentionTables(description, length)
      : documentTables(description, documentStarts, shape);
  const places = Int32Array.from(
    { length: batch * length },
    (_, i) => (i % length) - (documentStarts?.[i] ?? 0),
  );
  return {
    ids: tf.reshape(ids, [batch * length]),
    positions: tf.tensor1d(places, "int32"),
    attend: (layer, query, key, value) => attention([query, key, value], tables[layer]!, shape),
  };
}
