import * as tf from "@tensorflow/tfjs-core";
import { messageOf } from "@periodic-eval/core";
import type { Sizes } from "../graph/dimensions.ts";
import { GraphFunction, graphBackend, type GraphBackend } from "../graph/graph-function.ts";
import { trace, type Trace } from "../graph/trace.ts";
import { blockSpecs, listBlock, mapBlock, type BlockPlan, type BlockSizes, type BlockTree } from "./block.ts";
import type { LayerCache } from "./cached-tokens.ts";
import type { DecoderDescription } from "./description.ts";
import { readBlock, type ReadBlock } from "./read-block.ts";
import { listWeights, type Decoder } from "./weights.ts";

/**
 * Blocks as graphs, on engines that run graphs: the same operations with the same results, without what calling 2,000 of
 * them one by one costs. A graph is made the first time that a block of its kind is read, for all sizes, and reads the
 * weights as they are at each call. See docs/decisions/2026-11-21-graphs.md.
 */
export class BlockGraphs {
  readonly #description: DecoderDescription;
  readonly #weights: Decoder<tf.Variable>;
  readonly #plan: BlockPlan;
  readonly #graphs = new Map<string, GraphFunction | null>();

  constructor(description: DecoderDescription, weights: Decoder<tf.Variable>, plan: BlockPlan) {
    this.#description = description;
    this.#weights = weights;
    this.#plan = plan;
  }

  /** Null where the engine runs no graphs, or could not make this one. What is given belongs to the caller. */
  read(
    inputs: BlockTree<tf.Tensor>,
    isShared: readonly boolean[],
    sizes: BlockSizes,
    isKept: boolean,
  ): ReadBlock | null {
    const backend = graphBackend();
    if (backend === null || sizes.past.length > piecesTraced) return null;
    const kind: BlockKind = { inputs, isShared, isKept, isSingle: sizes.length === 1 };
    const graph = this.#graphOf(backend, kind);
    if (graph === null) return null;
    const outputs = graph.run(listBlock(inputs), openSizes(sizes));
    const states = inputs.rows === null ? null : (outputs.shift() as tf.Tensor2D);
    return { states, kept: isKept ? cachesOf(outputs) : [] };
  }

  dispose(): void {
    for (const graph of this.#graphs.values()) graph?.dispose();
    this.#graphs.clear();
  }

  #graphOf(backend: GraphBackend, kind: BlockKind): GraphFunction | null {
    const key = keyOf(kind);
    let graph = this.#graphs.get(key);
    if (graph === undefined) {
      graph = this.#made(backend, kind);
      this.#graphs.set(key, graph);
    }
    return graph;
  }

  #made(backend: GraphBackend, kind: BlockKind): GraphFunction | null {
    try {
      const [traced, again] = tracedSizes.map((sizes) => this.#trace(kind, sizes)) as [Trace, Trace];
      if (!isEqual(traced, again))
        throw new Error("it depends on sizes in a way that a graph does not express");
      return new GraphFunction(backend, traced);
    } catch (error) {
      process.emitWarning(
        `Reading tokens runs slower than it could: TensorFlow's graph of it was not made (${messageOf(error)}). Results are the same.`,
        { code: "PERIODIC_EVAL_GRAPH" },
      );
      return null;
    }
  }

  #trace({ inputs, isShared, isKept, isSingle }: BlockKind, sizes: BlockSizes): Trace {
    const length = isSingle ? 1 : sizes.length;
    const own = inputs.into === null ? length : sizes.own;
    const used = { ...sizes, length, own, past: sizes.past.slice(0, inputs.past.length) };
    const specs = blockSpecs(this.#description, inputs, isShared, used);
    const run = (given: readonly tf.Tensor[]) => {
      const left = given.values();
      const tree = mapBlock(specs, () => left.next().value!);
      const { states, kept } = readBlock(this.#description, this.#weights, this.#plan, tree, used, isKept);
      return [...(states === null ? [] : [states]), ...kept.flatMap(({ keys, values }) => [keys, values])];
    };
    return trace(run, listBlock(specs), listWeights(this.#weights), openSizes(used));
  }
}

/** What decides which operations read a block. */
interface BlockKind {
  readonly inputs: BlockTree<tf.Tensor>;
  readonly isShared: readonly boolean[];
  readonly isKept: boolean;
  /** One token a row, which spares transpositions. */
  readonly isSingle: boolean;
}

function keyOf({ inputs, isShared, isKept, isSingle }: BlockKind): string {
  const masks = inputs.masks.map(({ past, own }) => [...past, own].map((mask) => mask !== null));
  const { rows, into } = inputs;
  return JSON.stringify([isShared, isKept, isSingle, masks, rows !== null, into !== null]);
}

const piecesTraced = 4;

/** Primes, and so far apart that sums of them are none of their products. */
const tracedSizes: readonly BlockSizes[] = [
  { batch: 10_007, length: 10_009, rows: 10_037, own: 20_011, past: [10_039, 10_061, 10_067, 10_069] },
  { batch: 11_003, length: 11_027, rows: 11_047, own: 23_003, past: [11_057, 11_059, 11_069, 11_071] },
];

/** What a graph leaves open, by name. */
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

const isEqual = (a: Trace, b: Trace): boolean =>
  JSON.stringify([a.nodes, a.shapes, a.outputs]) === JSON.stringify([b.nodes, b.shapes, b.outputs]);

function cachesOf(outputs: readonly tf.Tensor[]): LayerCache[] {
  const kept = outputs.map((x) => tf.keep(x as tf.Tensor3D));
  return Array.from({ length: kept.length / 2 }, (_, layer) => ({
    keys: kept[2 * layer]!,
    values: kept[2 * layer + 1]!,
  }));
}
