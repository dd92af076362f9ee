import * as tf from "@tensorflow/tfjs-core";
import { activate, activateGated } from "../ops/activation.ts";
import { scaled, sum, dropout, softCap } from "../ops/arithmetic.ts";
import { columns, rowsAt, chunkBytes, rowsIn } from "../ops/select.ts";
import { crossEntropy, headLoss } from "../ops/head-loss.ts";
import { isDifferentiated } from "../ops/differentiable.ts";
import { layerNorm, rmsNorm } from "../ops/norms.ts";
import { linear, tiedHead, addLora } from "../ops/linear.ts";
import { recomputedByRows } from "../ops/recomputed.ts";
import type { DecoderDescription } from "./description.ts";
import type { Adapter, Decoder, Layer, Linear, Norm } from "./weights.ts";

/** N tokens of any number of sequences. */
export interface Tokens {
  /** int32 [N]. */
  readonly ids: tf.Tensor1D;
  /** int32 [N]: rows in the table of learned positions, for models that have one. */
  readonly positions: tf.Tensor1D;
  readonly attend: Attend;
}

/**
 * Computes the attention of a layer: query [N, heads·headDim], key and value [N, keyValueHeads·headDim], after bias and
 * norms and before rotation → [N, heads·headDim]. Determines which tokens attend to each other, and their positions.
 */
export type Attend = (layer: number, query: tf.Tensor2D, key: tf.Tensor2D, value: tf.Tensor2D) => tf.Tensor2D;

export interface ForwardOptions {
  /** int32 [M], indices into the N tokens: the head runs on these only. Null: on all. */
  readonly rows?: tf.Tensor1D | null;
  /** Dropout, for a pass that trains. */
  readonly dropout?: Dropout | null;
  /** Receives the residual stream [N, hidden] before each layer and after the final norm; must copy it to keep it. */
  readonly observe?: (hidden: tf.Tensor2D) => void;
  /** Wraps the run of each layer, for activation checkpointing. Default: runs it directly. */
  readonly through?: Through;
}

export type Through = (index: number, x: tf.Tensor2D, run: RunLayer) => tf.Tensor2D;

/** Maps the residual stream before a layer to that after it; the last layer returns only the requested rows. */
export type RunLayer = (x: tf.Tensor2D, inputs: LayerSurroundings) => tf.Tensor2D;

/** The inputs of a layer besides the residual stream. */
export interface LayerSurroundings {
  readonly attend: Attend;
  readonly rows: tf.Tensor1D | null;
}

/**
 * Dropout by place: `embedding`, the outputs of attention and MLP (`layer.0.mlp`), and the input of an adapter (the name of
 * the linear map and `.lora_dropout`).
 */
export interface Dropout {
  isAt(place: string): boolean;
  /** Returns the mask that multiplies the values at a place with dropout. */
  mask(place: string, shape: readonly [number, number]): tf.Tensor2D;
}

type Weights = Decoder<tf.Tensor>;

/**
 * Maps N tokens to logits float32 [M, V] of the requested rows. Differentiable in the weights if `attend` is. The caller
 * owns the logits; other new tensors belong to the surrounding `tf.tidy`, which is required.
 */
export function forward(
  description: DecoderDescription,
  weights: Weights,
  tokens: Tokens,
  options?: ForwardOptions,
): tf.Tensor2D {
  const states = finalStates(description, weights, tokens, options);
  return logitsOf(description, weights, states, options?.dropout);
}

/** Runs `forward` without the head: float32 [M, hidden] after the final norm. */
export function finalStates(
  description: DecoderDescription,
  weights: Weights,
  { ids, positions, attend }: Tokens,
  { rows = null, dropout: masking = null, observe, through }: ForwardOptions = {},
): tf.Tensor2D {
  // Each part disposes its tensors before the next begins, so that all layers reuse the same memory.
  let hidden = tf.tidy(() =>
    droppedAt(masking, embeddingOf(description, weights, ids, positions), "embedding"),
  );
  for (const index of weights.layers.keys()) {
    observe?.(hidden);
    const before = hidden;
    const run: RunLayer = (x, inputs) => layerOf(description, weights, index, x, { ...inputs, masking });
    hidden = through ? through(index, before, run) : run(before, { attend, rows });
    if (!isDifferentiated()) before.dispose();
  }
  if (rows?.size === 0) return hidden;
  const states = normOf(description, weights.finalNorm, hidden);
  observe?.(states);
  return states;
}

function layerOf(
  description: DecoderDescription,
  { layers }: Weights,
  index: number,
  x: tf.Tensor2D,
  { attend, rows, masking }: LayerSurroundings & { readonly masking: Dropout | null },
): tf.Tensor2D {
  const layer = layers[index]!;
  const norm = (weights: Norm<tf.Tensor> | null, x: tf.Tensor2D) =>
    weights === null ? x : normOf(description, weights, x);
  const isLast = index === layers.length - 1;
  const { residual: arrangement, residualScale } = description.block;
  /** Selects the requested rows in the last layer, after attention has used all of them. */
  const wanted = (x: tf.Tensor2D) => (rows === null || !isLast ? x : rowsAt(x, rows));
  const runAttention = () =>
    attend(index, ...queryKeyValueOf(description, layer, norm(layer.attentionNorm, x), masking));
  const attentionPart = () =>
    tf.tidy(() => {
      const attended = project(layer.output, wanted(runAttention()), masking);
      return droppedAt(
        masking,
        scaledBy(residualScale, norm(layer.attentionOutputNorm, attended)),
        `layer.${index}.attention`,
      );
    });
  const mlpPart = (read: tf.Tensor2D) =>
    tf.tidy(() => {
      const before = arrangement === "parallelOneNorm" ? layer.attentionNorm : layer.mlpNorm;
      const mlp = mlpOf(description, layer, norm(before, read), masking);
      return droppedAt(
        masking,
        scaledBy(residualScale, norm(layer.mlpOutputNorm, mlp)),
        `layer.${index}.mlp`,
      );
    });
  return tf.tidy(() => {
    if (isLast && rows?.size === 0) {
      // Attention still has to cache the keys and values of the tokens.
      runAttention();
      return tf.zeros<tf.Rank.R2>([0, description.hiddenSize]);
    }
    const residual = wanted(x);
    const attended = sum(residual, attentionPart());
    return sum(attended, mlpPart(arrangement === "sequential" ? attended : residual));
  });
}

const scaledBy = (factor: number, x: tf.Tensor2D): tf.Tensor2D => (factor === 1 ? x : scaled(x, factor));

function droppedAt(masking: Dropout | null, x: tf.Tensor2D, place: string): tf.Tensor2D {
  return masking?.isAt(place) ? dropout(x, masking.mask(place, x.shape)) : x;
}

/** Applies a linear map with its adapter; all except a tied head use this. */
function project(
  { weight, bias, adapter }: Linear<tf.Tensor>,
  x: tf.Tensor2D,
  masking: Dropout | null,
): tf.Tensor2D {
  return adapted(linear(x, weight as tf.Tensor2D, bias as tf.Tensor1D | null), x, adapter, masking);
}

function adapted(
  output: tf.Tensor2D,
  x: tf.Tensor2D,
  adapter: Adapter<tf.Tensor> | undefined,
  masking: Dropout | null,
): tf.Tensor2D {
  if (adapter === undefined) return output;
  const { name, a, b, scale } = adapter;
  return addLora(output, droppedAt(masking, x, `${name}.lora_dropout`), {
    a: a as tf.Tensor2D,
    b: b as tf.Tensor2D,
    scale,
  });
}

function embeddingOf(
  { embedding: { scale, paddingRow } }: DecoderDescription,
  { embedding, positions: places }: Weights,
  ids: tf.Tensor1D,
  positions: tf.Tensor1D,
): tf.Tensor2D {
  const rows = rowsAt(embedding as tf.Tensor2D, ids, paddingRow);
  const embedded = scaledBy(scale, rows);
  return places === null ? embedded : sum(embedded, rowsAt(places as tf.Tensor2D, positions));
}

function queryKeyValueOf(
  description: DecoderDescription,
  { queryKeyValue, queryNorm, keyNorm }: Layer<tf.Tensor>,
  x: tf.Tensor2D,
  masking: Dropout | null,
): readonly [query: tf.Tensor2D, key: tf.Tensor2D, value: tf.Tensor2D] {
  const [query, key, value] = separated(
    description,
    queryKeyValue.map((map) => project(map, x, masking)),
  );
  return [
    queryNorm === null ? query : normOf(description, queryNorm, query),
    keyNorm === null ? key : normOf(description, keyNorm, key),
    value,
  ];
}

function separated(
  { attention: { heads, keyValueHeads, headDim, projection } }: DecoderDescription,
  projected: readonly tf.Tensor2D[],
): readonly [query: tf.Tensor2D, key: tf.Tensor2D, value: tf.Tensor2D] {
  const [first] = projected as [tf.Tensor2D];
  switch (projection) {
    case "separate":
      return projected as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
    case "fused": {
      const [querySize, keySize] = [heads * headDim, keyValueHeads * headDim];
      const key = columns(first, querySize, keySize);
      return [columns(first, 0, querySize), key, columns(first, querySize + keySize, keySize)];
    }
    case "fusedByHead": {
      const part = (index: number) => columns(first, index * headDim, headDim, heads);
      return [part(0), part(1), part(2)];
    }
  }
}

function mlpOf(
  { mlp: { kind, activation, size } }: DecoderDescription,
  { up, down }: Layer<tf.Tensor>,
  x: tf.Tensor2D,
  masking: Dropout | null,
): tf.Tensor2D {
  const [first, second] = up.map((map) => project(map, x, masking)) as [tf.Tensor2D, tf.Tensor2D];
  switch (kind) {
    case "gated":
      return project(down, activateGated(activation, first, second), masking);
    case "gatedFused":
      return project(
        down,
        activateGated(activation, columns(first, 0, size), columns(first, size, size)),
        masking,
      );
    case "plain":
      return project(down, activate(activation, first), masking);
  }
}

function normOf(
  { norm }: DecoderDescription,
  { weight, bias }: Norm<tf.Tensor>,
  x: tf.Tensor2D,
): tf.Tensor2D {
  return norm.kind === "rms"
    ? rmsNorm(x, weight as tf.Tensor1D, norm.epsilon, norm.offset)
    : layerNorm(x, weight as tf.Tensor1D, bias as tf.Tensor1D | null, norm);
}

/**
 * Applies the head and the loss to final states [M, hidden] with targets int32 [M] → −log p in nats, [M]. Never holds all
 * logits at once.
 */
export function lossesOf(
  description: DecoderDescription,
  weights: Weights,
  x: tf.Tensor2D,
  targets: tf.Tensor1D,
  masking: Dropout | null = null,
): tf.Tensor1D {
  const { embedding, head, headAdapter } = weights;
  const weight = (head?.weight ?? embedding) as tf.Tensor2D;
  const { softCap: cap, scale } = description.head;
  if (headAdapter === undefined && !head?.bias) {
    // Scales the states instead of the logits, which are wider.
    return headLoss(scaledBy(scale, x), { weight, isTied: head === null, softCap: cap }, targets);
  }
  const place = `${headAdapter?.name}.lora_dropout`;
  // Draws the mask for all rows at once, as `logitsOf` does.
  const mask = headAdapter && masking?.isAt(place) ? [masking.mask(place, x.shape)] : [];
  const furtherWeights = [head?.bias, headAdapter?.a, headAdapter?.b];
  return recomputedByRows(
    { x, weights: [weight, ...furtherWeights.filter((weight) => !!weight)], beside: [targets, ...mask] },
    rowsIn(chunkBytes, description.vocabSize),
    (x, [targets, mask]) => {
      const dropping: Dropout = { isAt: (at) => at === place && !!mask, mask: () => mask as tf.Tensor2D };
      return crossEntropy(logitsOf(description, weights, x, dropping), targets as tf.Tensor1D);
    },
  );
}

/** Applies the head: final states [M, hidden] → logits [M, V]. */
export function logitsOf(
  description: DecoderDescription,
  { embedding, head, headAdapter }: Weights,
  x: tf.Tensor2D,
  masking: Dropout | null = null,
): tf.Tensor2D {
  const { scale, softCap: cap } = description.head;
  const plain = head === null ? tiedHead(x, embedding as tf.Tensor2D) : project(head, x, masking);
  const logits = scaledBy(scale, adapted(plain, x, headAdapter, masking));
  return cap === null ? logits : softCap(logits, cap);
}
