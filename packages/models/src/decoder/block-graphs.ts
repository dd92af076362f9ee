import * as tf from "@tensorflow/tfjs-core";
import type {
  GraphFunction,
  GraphSet,
  GraphType,
  Sizes,
  TensorSpec,
  trace,
  Trace,
} from "@periodic-eval/kernels";
import { loadedKernels } from "../backend/kernels.ts";
import {
  blockSpecs,
  listInputs,
  mapInputs,
  type BlockSizes,
  type BlockInputs,
  readBlock,
  type BlockReader,
  type ReadBlock,
} from "./block.ts";
import type { LayerCache } from "./cached-tokens.ts";
import { halfOf, isHalf } from "../ops/half-weights.ts";
import { linearsOf, listWeights, mapWeights } from "./weights.ts";

/**
 * Reads blocks with graphs, on backends that run graphs: the same operations without the overhead of 2,000 separate calls.
 * Builds a graph for all sizes when it first reads a block of a kind, and passes the weights at each call. See
 * docs/decisions/native-tensorflow.md.
 */
export class BlockGraphs {
  readonly #reader: BlockReader;
  readonly #weights: readonly tf.Tensor[];
  /** The weights of linear maps. */
  readonly #maps: ReadonlySet<tf.Tensor>;
  #graphs: GraphSet<GraphFunction> | null = null;

  constructor(reader: BlockReader) {
    this.#reader = reader;
    this.#weights = listWeights(reader.weights);
    this.#maps = new Set(reader.weights.layers.flatMap(linearsOf).map(({ weight }) => weight));
  }

  /** Returns null without `@periodic-eval/kernels`, if the backend runs no graphs, or if building one failed. The results belong to the caller. */
  read(
    inputs: BlockInputs<tf.Tensor>,
    isShared: readonly boolean[],
    sizes: BlockSizes,
    isKept: boolean,
  ): ReadBlock | null {
    const kernels = loadedKernels();
    if (kernels === null || sizes.past.length > piecesTraced) return null;
    this.#graphs ??= new kernels.GraphSet("Reading tokens");
    const weights = this.#weights.map((weight) => (this.#maps.has(weight) ? halfOf(weight) : weight));
    const kind: BlockKind = { inputs, isShared, isKept, isSingle: sizes.length === 1, weights };
    const graph = this.#graphs.get(keyOf(kind), (backend) => {
      const [traced, again] = tracedSizes.map((sized) => this.#trace(kernels.trace, kind, sized)) as [
        Trace,
        Trace,
      ];
      kernels.checkEqual(traced, again);
      return new kernels.GraphFunction(backend, traced);
    });
    if (graph === null) return null;
    const outputs = graph.run([...listInputs(inputs), ...weights], openSizes(sizes));
    const states = inputs.rows === null ? null : (outputs.shift() as tf.Tensor2D);
    return { states, kept: isKept ? cachesOf(outputs) : [] };
  }

  dispose(): void {
    this.#graphs?.dispose();
  }

  #trace(
    record: typeof trace,
    { inputs, isShared, isKept, isSingle, weights }: BlockKind,
    sizes: BlockSizes,
  ): Trace {
    const { description } = this.#reader;
    const length = isSingle ? 1 : sizes.length;
    const own = inputs.into === null ? length : sizes.own;
    const used = { ...sizes, length, own, past: sizes.past.slice(0, inputs.past.length) };
    const ofBlock = blockSpecs(description, inputs, isShared, used);
    const next = weights.values();
    const ofWeights = mapWeights(this.#reader.weights, (): TensorSpec => {
      const { dtype, shape } = next.next().value!;
      return { type: dtype as GraphType, shape };
    });
    const run = (tensors: readonly tf.Tensor[]) => {
      const left = tensors.values();
      const block = mapInputs(ofBlock, () => left.next().value!);
      const reader = { ...this.#reader, weights: mapWeights(ofWeights, () => left.next().value!) };
      const { states, kept } = readBlock(reader, block, used, isKept);
      return [...(states === null ? [] : [states]), ...kept.flatMap(({ keys, values }) => [keys, values])];
    };
    return record(run, [...listInputs(ofBlock), ...listWeights(ofWeights)], openSizes(used));
  }
}

/** The properties of a block that determine its operations. */
interface BlockKind {
  readonly inputs: BlockInputs<tf.Tensor>;
  readonly isShared: readonly boolean[];
  readonly isKept: boolean;
  /** Whether each row has one token, which saves transpositions. */
  readonly isSingle: boolean;
  /** In the order of `listWeights`; half-width where possible. */
  readonly weights: readonly tf.Tensor[];
}

function keyOf({ inputs, isShared, isKept, isSingle, weights }: BlockKind): string {
  const masks = inputs.masks.map(({ past, own }) => [...past, own].map((mask) => mask !== null));
  const { rows, into } = inputs;
  const halves = weights.map((weight) => Number(isHalf(weight))).join("");
  return JSON.stringify([isShared, isKept, isSingle, masks, rows !== null, into !== null, halves]);
}

/** Blocks with more pieces run without a graph. */
const piecesTraced = 4;

/**
 * Primes, so that every dimension factors into them. `own` − `length`, the cached tokens that a block extends, is not prime;
 * two traces that agree show that this does not matter.
 */
const tracedSizes: readonly BlockSizes[] = [
  { batch: 10_007, length: 10_009, rows: 10_037, own: 20_011, past: [10_039, 10_061, 10_067, 10_069] },
  { batch: 11_003, length: 11_027, rows: 11_047, own: 23_003, past: [11_057, 11_059, 11_069, 11_071] },
];

/** Returns the open sizes of a graph, by name. */
function openSizes({ batch, length, rows, own, past }: BlockSizes): Sizes {
  const pieces = past.map((tokens, i) => [`past${i}`, tokens] as const);
  return {
    batch,
    rows,
    ...(length > 1 && { length }),
    ...(own !== length && { own, into: own - length }),
    ...Object.fromEntries(pieces),
  };
}

function cachesOf(outputs: readonly tf.Tensor[]): LayerCache[] {
  const tensors = outputs.map((x) => tf.keep(x as tf.Tensor3D));
  return Array.from({ length: tensors.length / 2 }, (_, layer) => ({
    keys: tensors[2 * layer]!,
    values: tensors[2 * layer + 1]!,
  }));
}
