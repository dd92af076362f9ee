import type * as tf from "@tensorflow/tfjs-core";
import type {
  GraphFunction,
  GraphSet,
  GraphType,
  Sizes,
  TensorSpec,
  TracedPass,
  tracePass,
} from "@periodic-eval/kernels";
import { loadedKernels } from "../backend/kernels.ts";
import type { AttentionTables } from "../ops/attention.ts";
import { differentiable, gradientsOf } from "../ops/differentiable.ts";
import { wholeSequences, type Sequences } from "./causal-attention.ts";
import type { DecoderDescription } from "./description.ts";
import { finalStates, type Dropout } from "./forward.ts";
import { listTables, mapTables, type TracedSizes } from "./tables.ts";
import { listWeights, mapWeights, type Decoder } from "./weights.ts";

/**
 * Runs the layers in training as two graphs, forward and backward, on backends that run graphs: the same operations in two
 * calls instead of thousands. See docs/decisions/training.md.
 */
export class TrainingGraphs {
  readonly #description: DecoderDescription;
  readonly #weights: Decoder<tf.Tensor>;
  readonly #trainables: ReadonlySet<tf.Tensor>;
  #graphs: GraphSet<PassGraphs> | null = null;

  constructor(
    description: DecoderDescription,
    weights: Decoder<tf.Tensor>,
    trainables: readonly tf.Variable[],
  ) {
    this.#description = description;
    this.#weights = weights;
    this.#trainables = new Set<tf.Tensor>(trainables);
  }

  /**
   * Computes `finalStates` of the rows, differentiable in the trainables. Returns null without `@periodic-eval/kernels`, if
   * the backend runs no graphs, or if building one failed. New tensors belong to the surrounding `tf.tidy`.
   */
  states(
    sequences: Sequences,
    rows: tf.Tensor1D,
    { batch, length }: { readonly batch: number; readonly length: number },
    dropout: Dropout,
  ): tf.Tensor2D | null {
    const kernels = loadedKernels();
    // Sequences of one token need a separate graph, and nothing is predicted in them.
    if (kernels === null || length === 1) return null;
    this.#graphs ??= new kernels.GraphSet("Training");
    const { list, layout } = listTables(this.#description.attention, sequences.tables);
    const kind = [layout, ...places.map((place) => dropout.isAt(place))];
    const graphs = this.#graphs.get(kind.join(), (backend) => {
      const [pass, again] = tracedSizes.map((sized) =>
        this.#trace(kernels.tracePass, sequences.tables, dropout, sized),
      ) as [TracedPass, TracedPass];
      kernels.checkEqual(pass.forward, again.forward);
      kernels.checkEqual(pass.backward, again.backward);
      const [forward, backward] = [pass.forward, pass.backward].map(
        (traced) => new kernels.GraphFunction(backend, traced),
      ) as [GraphFunction, GraphFunction];
      const dispose = () => [forward, backward].forEach((graph) => graph.dispose());
      return { pass, forward, backward, dispose };
    });
    if (graphs === null) return null;
    const { forward, backward, pass } = graphs;
    const sizes: Sizes = { batch, length, rows: rows.size };
    const drawn = pass.extra.map(({ name, shape }) => {
      return dropout.mask(
        name,
        shape.map((dimension) => kernels.valueOf(dimension, sizes)) as [number, number],
      );
    });
    const { ids, positions } = sequences;
    const inputs = [ids, positions, rows, ...list, ...listWeights(this.#weights), ...drawn];
    const wanted = pass.wanted.map((at) => inputs[at]!);
    return differentiable(wanted, (save) => {
      const [states, ...saved] = forward.run(inputs, sizes);
      save([...saved, ...inputs]);
      return {
        value: states as tf.Tensor2D,
        backward: (gradient, saved) => backward.run([gradient, ...saved], sizes),
      };
    });
  }

  dispose(): void {
    this.#graphs?.dispose();
  }

  #trace(
    record: typeof tracePass,
    tables: readonly AttentionTables[],
    dropout: Dropout,
    sizes: TracedSizes,
  ): TracedPass {
    const { batch, length, rows } = sizes;
    const tokens: TensorSpec = { type: "int32", shape: [batch * length] };
    const ofTables: TensorSpec[] = [];
    mapTables(this.#description.attention, tables, (table, shape) => {
      ofTables.push({ type: "float32", shape: shape(sizes) });
      return table;
    });
    const weights = listWeights(this.#weights);
    const ofWeights = weights.map(({ dtype, shape }): TensorSpec => ({ type: dtype as GraphType, shape }));
    const before = [tokens, tokens, { type: "int32", shape: [rows] } as const, ...ofTables];
    const of = weights.flatMap((weight, i) => (this.#trainables.has(weight) ? [before.length + i] : []));
    return record(
      (tensors, requestInput) => {
        const left = tensors.values();
        const next = () => left.next().value!;
        const [ids, positions, wanted] = [next(), next(), next()] as tf.Tensor1D[];
        const traced = mapTables(this.#description.attention, tables, next);
        const read = mapWeights(this.#weights, next);
        const sequences = { ids: ids!, positions: positions!, tables: traced };
        const requested: Dropout = {
          isAt: (place) => dropout.isAt(place),
          mask: (place, shape) => requestInput(place, shape) as tf.Tensor2D,
        };
        return gradientsOf(
          of.map((at) => tensors[at]!),
          () =>
            finalStates(this.#description, read, wholeSequences(this.#description, sequences, sizes), {
              rows: wanted!,
              dropout: requested,
            }),
        );
      },
      [...before, ...ofWeights],
      of,
      [rows, this.#description.hiddenSize],
      sizes,
    );
  }
}

interface PassGraphs {
  readonly pass: TracedPass;
  readonly forward: GraphFunction;
  readonly backward: GraphFunction;
  dispose(): void;
}

/** One place for each kind of dropout, because a graph is built with or without it. */
const places = ["embedding", ".lora_dropout"];

/** Primes, so that every dimension factors into them. */
const tracedSizes: readonly TracedSizes[] = [
  { batch: 10_007, length: 10_009, rows: 10_037 },
  { batch: 11_003, length: 11_027, rows: 11_047 },
];
