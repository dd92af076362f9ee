import type { TrainingPassMemory, TrainingPassSize } from "@periodic-eval/core/tfjs";
import { chunkBytes } from "../ops/chunks.ts";
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
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Values per token that an activation keeps, in multiples of the MLP's size: its result and what its slope needs. */
const keptByActivation = { silu: 2, gelu: 3, geluTanh: 3, relu: 1 };

/**
 * Estimates the memory of a training pass from sizes alone: the tensors that each operation of `ops` keeps for its backward
 * pass, and the largest temporary ones beside them. TensorFlow.js frees kept tensors at the end of the backward pass. See
 * docs/decisions/2026-11-23-training-memory.md for the measured error.
 */
export function trainingMemory(
  description: DecoderDescription,
  decoder: Decoder<SizedWeight>,
  pass: TrainingPassSize,
  rates: DropoutRates,
): TrainingPassMemory {
  const isWasm = pass.backend === "wasm";
  const tokens = pass.rows * pass.tokens;
  const all = listWeights(decoder);
  const weights = sizesOf(all);
  const trainables = sizesOf(all.filter(({ isTrained }) => isTrained));
  const { hiddenSize, layers } = description;
  const ofLayers = decoder.layers.map((layer) => layerValues(description, layer, pass, rates));
  const tables = isWasm ? tableValues(description, pass) : 0;
  // On wasm the input that a layer keeps is a copy of the layer's output.
  const checkpointed = layers.length * (tokens * hiddenSize * (isWasm ? 2 : 1) + tables);
  const largest = Math.max(...ofLayers);
  const kept = pass.activationCheckpointing ? checkpointed + largest : sum(ofLayers) + layers.length * tables;
  const headSize = sizeOf(decoder.head?.weight ?? decoder.embedding);
  const activations = kept + 3 * tokens * hiddenSize;
  const workspace =
    temporaryValues(description, decoder, tokens * pass.tokens, tokens) +
    (isWasm ? engineCopies(decoder, headSize) : 0);
  const bytes = (values: number) => 4 * values;
  return {
    weights: bytes(weights),
    trainables: bytes(trainables),
    activations: bytes(activations),
    workspace: bytes(workspace),
  };
}

/** Returns how many values a layer keeps. On wasm every kept tensor is a copy, also of a frozen weight. */
function layerValues(
  { hiddenSize, attention, mlp, norm }: DecoderDescription,
  layer: Layer<SizedWeight>,
  { rows, tokens, backend }: TrainingPassSize,
  rates: DropoutRates,
): number {
  const isWasm = backend === "wasm";
  const count = rows * tokens;
  const { heads, keyValueHeads, headDim, softCap } = attention;
  const [querySize, keySize] = [heads * headDim, keyValueHeads * headDim];
  const norms = [layer.attentionNorm, layer.attentionOutputNorm, layer.mlpNorm, layer.mlpOutputNorm];
  const normed = norms.filter((one) => one !== null).length * hiddenSize * (norm.kind === "rms" ? 1 : 1);
  const ofHeads = layer.queryNorm === null ? 0 : querySize + keySize;
  const scores = heads * tokens * (softCap === null ? 1 : 2);
  const gate = mlp.kind === "plain" ? 0 : 1;
  const activated = (keptByActivation[mlp.activation] + gate) * mlp.size;
  const masks = rates.dropout > 0 ? 2 * hiddenSize : 0;
  const inputs = inputValues(layer, rates, isWasm);
  const perToken = normed + ofHeads + querySize + 2 * keySize + scores + activated + masks + inputs;
  const copies = isWasm ? sizesOf(linearsOf(layer).map(({ weight }) => weight)) : 0;
  return count * (perToken + hiddenSize) + copies;
}

/** Returns how many values per token the linear maps of a layer keep of their inputs. */
function inputValues(layer: Layer<SizedWeight>, { adapterDropout }: DropoutRates, isWasm: boolean): number {
  const keeps = ({ weight, adapter }: Linear<SizedWeight>) => weight.isTrained || adapter !== undefined;
  const kept = (maps: readonly Linear<SizedWeight>[]): number => {
    const keeping = maps.filter(keeps);
    const [width = 0] = keeping[0]?.weight.shape ?? [];
    // Other engines share the values of maps with the same input.
    const copies = isWasm ? keeping.length : Math.min(1, keeping.length);
    const ranks = keeping.flatMap(({ adapter }) => (adapter ? [adapter.a.shape[1]!] : []));
    const dropped = adapterDropout > 0 ? (isWasm ? 1 : 2) * ranks.length * width : 0;
    return copies * width + dropped + sum(ranks);
  };
  return sum([layer.queryKeyValue, [layer.output], layer.up, [layer.down]].map(kept));
}

/** Returns the values of the attention tables, which each layer keeps: cosines and sines of queries and keys, and the swap. */
const tableValues = ({ attention: { headDim } }: DecoderDescription, { tokens }: TrainingPassSize): number =>
  4 * tokens * headDim + headDim ** 2;

/** Returns the values of temporary tensors at the peak: at the head, within a layer, or where gradients of a tied head meet. */
function temporaryValues(
  { attention: { heads }, mlp, head, hiddenSize }: DecoderDescription,
  decoder: Decoder<SizedWeight>,
  pairs: number,
  tokens: number,
): number {
  const logits = (6 * chunkBytes) / 4;
  const headWeight = decoder.head?.weight ?? decoder.embedding;
  const ofHead = headWeight.isTrained ? 2 * sizeOf(headWeight) : 0;
  const inLayer = Math.max(5 * heads * pairs, 6 * tokens * mlp.size) + 4 * tokens * hiddenSize;
  return Math.max(Math.min(logits, 6 * tokens * decoder.embedding.shape[0]!) + ofHead, inLayer, head.tied ? ofHead : 0);
}

/**
 * Returns the values of the copies that wasm holds: XNNPACK's packed form of each weight that it multiplies by, and the
 * head, which is kept, transposed and packed once more.
 */
const engineCopies = (decoder: Decoder<SizedWeight>, headSize: number): number =>
  sizesOf(decoder.layers.flatMap(linearsOf).map(({ weight }) => weight)) + 4 * headSize;
