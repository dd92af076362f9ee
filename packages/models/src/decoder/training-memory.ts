import type { TrainingPassMemory, TrainingPassSize } from "@periodic-eval/tfjs";
import { chunkBytes } from "../ops/select.ts";
import type { DecoderDescription } from "./description.ts";
import { linearsOf, listWeights, type Decoder, type Layer, type Linear } from "./weights.ts";

/** The size of a weight; matrices are [in, out]. */
export interface SizedWeight {
  readonly shape: readonly number[];
  readonly isTrained: boolean;
}

/** Rates of dropout; where they are 0, no mask is kept. */
export interface DropoutRates {
  readonly dropout: number;
  readonly adapterDropout: number;
}

const sizeOf = ({ shape }: SizedWeight): number => shape.reduce((product, size) => product * size, 1);
const sizesOf = (weights: readonly SizedWeight[]): number => sum(weights.map(sizeOf));
const sum = (numbers: readonly number[]): number => numbers.reduce((total, value) => total + value, 0);

/**
 * Temporary tensors of the optimizer, of the largest weight's size. On wasm they find no room in the gaps that the backward
 * pass leaves.
 */
const updateValues = 8;

/** The memory that native TensorFlow's allocator holds beyond the tensors, as a share of their size. */
const retainedShare = 0.25;

/** Values per token that an activation keeps, in multiples of the MLP's size: its result and what its slope needs. */
const keptByActivation = { silu: 2, gelu: 3, geluTanh: 3, relu: 1, reluSquared: 2, quickGelu: 2 };

/**
 * Estimates the memory of a training pass from sizes alone: the tensors that each operation of `ops` keeps for its backward
 * pass, and the largest temporary ones beside them. TensorFlow.js frees kept tensors at the end of the backward pass. See
 * benchmarks/results/training.md for the measured error.
 */
export function trainingMemory(
  description: DecoderDescription,
  decoder: Decoder<SizedWeight>,
  pass: TrainingPassSize,
  rates: DropoutRates,
): TrainingPassMemory {
  const isWasm = pass.backend === "wasm";
  const isNative = pass.backend === "tensorflow";
  const tokens = pass.rows * pass.tokens;
  const all = listWeights(decoder);
  const weights = sizesOf(all);
  const trainables = sizesOf(all.filter(({ isTrained }) => isTrained));
  const { hiddenSize, layers } = description;
  const saved = decoder.layers.map((layer) => keptValues(description, layer, pass, rates));
  const gradients = decoder.layers.map((layer) => tokens * gradientValues(description, layer, rates));
  const stream = (2 * layers.length + 4) * tokens * hiddenSize;
  const ofTables = isNative ? 0 : layers.length * tableValues(description, pass);
  const { ofHead, inLayer } = temporaryValues(description, decoder, pass);
  const [largest, gradient] = [Math.max(...saved), Math.max(...gradients)];
  const { activationCheckpointing } = pass;
  // With checkpointing, a layer keeps only its input, and one layer at a time is run again.
  const inLayers = activationCheckpointing
    ? layers.length * tokens * hiddenSize
    : sum(saved) + (isNative ? 0 : sum(gradients));
  const again = activationCheckpointing ? largest + gradient : isNative ? gradient : 0;
  const activations = inLayers + stream + ofTables;
  const headSize = sizeOf(decoder.head?.weight ?? decoder.embedding);
  const workspace =
    Math.max(ofHead, inLayer + again) +
    (isWasm
      ? engineCopies(decoder, headSize) +
        updateValues * Math.max(0, ...all.filter(({ isTrained }) => isTrained).map(sizeOf))
      : 0);
  const total = weights + 3 * trainables + activations + workspace;
  const bytes = (values: number) => 4 * values;
  return {
    weights: bytes(weights),
    trainables: bytes(trainables),
    activations: bytes(activations),
    workspace: bytes(workspace + (isNative ? retainedShare * total : 0)),
  };
}

/** Returns how many values a layer keeps. Outside native TensorFlow's graphs, every kept tensor is a copy, also of a weight. */
function keptValues(
  description: DecoderDescription,
  layer: Layer<SizedWeight>,
  { rows, tokens, backend }: TrainingPassSize,
  rates: DropoutRates,
): number {
  const isCopied = backend !== "tensorflow";
  const { hiddenSize, attention, mlp } = description;
  const { querySize, keySize } = widthsOf(attention);
  const ofHeads = layer.queryNorm === null ? 0 : querySize + keySize;
  const scores = attention.heads * tokens * (attention.softCap === null ? 1 : 2);
  const activated = (keptByActivation[mlp.activation] + (mlp.kind === "plain" ? 0 : 1)) * mlp.size;
  const masks = rates.dropout > 0 ? 2 * hiddenSize : 0;
  const ofNorms = normsOf(layer).length * hiddenSize;
  const inputs = inputValues(description, layer, rates, isCopied);
  const perToken = ofNorms + ofHeads + querySize + 2 * keySize + scores + activated + masks + inputs;
  const copies = isCopied ? sizesOf(linearsOf(layer).map(({ weight }) => weight)) : 0;
  return rows * tokens * perToken + copies;
}

/**
 * Returns the values per token of the gradients within a layer: one for the result of each operation, because TensorFlow.js
 * frees them at the end of the backward pass.
 */
function gradientValues(
  { hiddenSize, attention, mlp }: DecoderDescription,
  layer: Layer<SizedWeight>,
  { dropout, adapterDropout }: DropoutRates,
): number {
  const { querySize, keySize } = widthsOf(attention);
  const maps = linearsOf(layer);
  const widthOf = ({ weight }: Linear<SizedWeight>) => weight.shape[1]!;
  const adapted = maps.filter(({ adapter }) => adapter !== undefined);
  const split = attention.projection === "separate" ? 0 : querySize + 2 * keySize;
  const gate = mlp.kind === "gatedFused" ? 2 * mlp.size : 0;
  const ofHeads = layer.queryNorm === null ? 0 : querySize + keySize;
  const dropped = adapterDropout > 0 ? sum(adapted.map(({ weight }) => weight.shape[0]!)) : 0;
  const residuals = (1 + normsOf(layer).length + (dropout > 0 ? 2 : 0)) * hiddenSize;
  return (
    sum(maps.map(widthOf)) +
    sum(adapted.map(widthOf)) +
    split +
    gate +
    ofHeads +
    dropped +
    residuals +
    querySize +
    mlp.size
  );
}

function widthsOf({ heads, keyValueHeads, headDim }: DecoderDescription["attention"]) {
  return { querySize: heads * headDim, keySize: keyValueHeads * headDim };
}

const normsOf = (layer: Layer<SizedWeight>) =>
  [layer.attentionNorm, layer.attentionOutputNorm, layer.mlpNorm, layer.mlpOutputNorm].filter(
    (norm) => norm !== null,
  );

/**
 * Returns how many values per token the linear maps of a layer keep of their inputs. Graphs of native TensorFlow do not keep the
 * results of RMS norms and of gated activations: the backward pass computes these products again.
 */
function inputValues(
  { norm, block, mlp }: DecoderDescription,
  layer: Layer<SizedWeight>,
  { adapterDropout }: DropoutRates,
  isCopied: boolean,
): number {
  const keeps = ({ weight, adapter }: Linear<SizedWeight>) => weight.isTrained || adapter !== undefined;
  const isNormRepeated = !isCopied && block.norms.before && norm.kind === "rms";
  const isActivationRepeated = !isCopied && mlp.kind !== "plain";
  const valuesOf = (maps: readonly Linear<SizedWeight>[], isRepeated = false): number => {
    const keeping = maps.filter(keeps);
    const [width = 0] = keeping[0]?.weight.shape ?? [];
    // Other backends share the values of maps with the same input.
    const copies = isRepeated ? 0 : isCopied ? keeping.length : Math.min(1, keeping.length);
    const ranks = keeping.flatMap(({ adapter }) => (adapter ? [adapter.a.shape[1]!] : []));
    const dropped = adapterDropout > 0 ? (isCopied ? 1 : 2) * ranks.length * width : 0;
    return copies * width + dropped + sum(ranks);
  };
  return sum([
    valuesOf(layer.queryKeyValue, isNormRepeated),
    valuesOf([layer.output]),
    valuesOf(layer.up, isNormRepeated),
    valuesOf([layer.down], isActivationRepeated),
  ]);
}

/** Returns the values of the attention tables, which each layer keeps: cosines and sines of queries and keys, and the swap. */
const tableValues = ({ attention: { headDim } }: DecoderDescription, { tokens }: TrainingPassSize): number =>
  4 * tokens * headDim + headDim ** 2;

/** Returns the values of the largest temporary tensors at the head and within a layer. */
function temporaryValues(
  { attention: { heads, softCap }, mlp, hiddenSize }: DecoderDescription,
  { head, embedding }: Decoder<SizedWeight>,
  { rows, tokens: length }: TrainingPassSize,
): { readonly ofHead: number; readonly inLayer: number } {
  const tokens = rows * length;
  const weight = head?.weight ?? embedding;
  // Six forms of one chunk of logits. A tied head also holds three gradients of the embedding where they meet.
  const logits = 6 * Math.min(chunkBytes / 4, tokens * embedding.shape[0]!);
  const scores = (softCap === null ? 7 : 11) * heads * tokens * length;
  return {
    ofHead: logits + (weight.isTrained ? 2 * sizeOf(weight) : 0),
    inLayer: Math.max(scores, 6 * tokens * mlp.size) + 4 * tokens * hiddenSize,
  };
}

/**
 * Returns the values of the copies that wasm holds: XNNPACK's packed form of each weight that it multiplies by, and the
 * head, which is kept, transposed and packed once more.
 */
const engineCopies = (decoder: Decoder<SizedWeight>, headSize: number): number =>
  sizesOf(decoder.layers.flatMap(linearsOf).map(({ weight }) => weight)) + 4 * headSize;
