import * as tf from "@tensorflow/tfjs-core";
import type { NamedRandom } from "@periodic-eval/core/tfjs";
import { attention, type AttentionShape, type AttentionTables } from "../ops/attention.ts";
import { dropout as applyDropout } from "../ops/dropout.ts";
import { gatedSilu } from "../ops/gated-silu.ts";
import { linear, tiedHead } from "../ops/linear.ts";
import { rmsNorm } from "../ops/rms-norm.ts";
import { rowsAt, sum } from "../ops/rows.ts";
import type { DecoderDescription } from "./description.ts";
import { attentionTables } from "./tables.ts";
import type { Decoder, Layer, Linear } from "./weights.ts";

export interface ForwardOptions {
  /** int32 [N], indices into the flattened B·T: the head runs on these alone. All where it is null. */
  readonly rows?: tf.Tensor1D | null;
  /** Of the embedding and of what attention and the MLP add to the residual stream. */
  readonly dropout?: { readonly rate: number; readonly random: NamedRandom } | null;
  /** Sees the residual stream before each layer, and after the final norm; [B·T, hidden], to be copied if kept. */
  readonly observe?: (hidden: tf.Tensor2D) => void;
}

type Weights = Decoder<tf.Variable>;

/**
 * ids int32 [B, T], positions from 0 → logits float32 [N, V], rows of the flattened B·T. Differentiable in the weights.
 * The caller owns the logits; what else is made belongs to the surrounding `tf.tidy`, which must be there.
 */
export function forward(
  description: DecoderDescription,
  weights: Weights,
  ids: tf.Tensor2D,
  { rows = null, dropout = null, observe }: ForwardOptions = {},
): tf.Tensor2D {
  const [batch, length] = ids.shape;
  const { heads, keyValueHeads, headDim } = description.attention;
  const shape: AttentionShape = { batch, length, heads, keyValueHeads, headDim };
  const tables = attentionTables(description, length);
  const dropped = (x: tf.Tensor2D, place: string) =>
    dropout === null ? x : applyDropout(x, dropout.rate, dropout.random(place));

  let hidden = dropped(rowsAt(weights.embedding as tf.Tensor2D, tf.reshape(ids, [-1])), "embedding");
  weights.layers.forEach((layer, index) => {
    observe?.(hidden);
    const attended = attentionOf(description, layer, hidden, tables, shape);
    hidden = sum(hidden, dropped(attended, `layer.${index}.attention`));
    hidden = sum(hidden, dropped(mlpOf(description, layer, hidden), `layer.${index}.mlp`));
  });
  observe?.(normOf(description, weights.finalNorm, hidden));
  // The head comes last and costs most: rows that nobody asked for are left out before it.
  const asked = rows === null ? hidden : rowsAt(hidden, rows);
  return headOf(weights, normOf(description, weights.finalNorm, asked));
}

function attentionOf(
  description: DecoderDescription,
  layer: Layer<tf.Variable>,
  hidden: tf.Tensor2D,
  tables: AttentionTables,
  shape: AttentionShape,
): tf.Tensor2D {
  const x = normOf(description, layer.attentionNorm, hidden);
  const qkv = [project(layer.query, x), project(layer.key, x), project(layer.value, x)] as const;
  return project(layer.output, attention(qkv, tables, shape));
}

function mlpOf(description: DecoderDescription, layer: Layer<tf.Variable>, hidden: tf.Tensor2D): tf.Tensor2D {
  const x = normOf(description, layer.mlpNorm, hidden);
  return project(layer.down, gatedSilu(project(layer.gate, x), project(layer.up, x)));
}

function normOf({ norm }: DecoderDescription, weight: tf.Variable, x: tf.Tensor2D): tf.Tensor2D {
  return rmsNorm(x, weight as tf.Tensor1D, norm.epsilon);
}

function headOf({ embedding, head }: Weights, x: tf.Tensor2D): tf.Tensor2D {
  return head === null ? tiedHead(x, embedding as tf.Tensor2D) : linear(x, head as tf.Tensor2D, null);
}

function project({ weight, bias }: Linear<tf.Variable>, x: tf.Tensor2D): tf.Tensor2D {
  return linear(x, weight as tf.Tensor2D, bias as tf.Tensor1D | null);
}
