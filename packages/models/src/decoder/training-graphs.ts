import type * as tf from "@tensorflow/tfjs-core";
import { type GraphType, valueOf, type Sizes } from "../graph/tracer.ts";
import { GraphFunction, type GraphBackend } from "../graph/graph-function.ts";
import { GraphSet, registerFusedCalls } from "../graph/graph-set.ts";
import { tracePass, type TracedPass } from "../graph/trace-pass.ts";
import { checkEqual, type TensorSpec } from "../graph/trace.ts";
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
  readonly #graphs = new GraphSet<PassGraphs>("Training");

  constructor(
    description: DecoderDescription,
    weights: Decoder<tf.Tensor>,
    trainables: readonly tf.Variable[],
  ) {
    registerFusedCalls();
    this.#description = description;
    this.#weights = weights;
    this.#trainables = new Set<tf.Tensor>(trainables);
  }

  /**
   * Computes `finalStates` of the rows, differentiable in the trainables. Returns null if the backend runs no graphs or
   * building one failed. New tensors belong to the surrounding `tf.tidy`.
   */
  states(
    sequences: Sequences,
    rows: tf.Tensor1D,
    { batch, length }: { readonly batch: number; readonly length: number },
    dropout: Dropout,
  ): tf.Tensor2D | null {
    // Sequences of one token need a separate graph, and nothing is predicted in them.
    if (length === 1) return null;
    const { list, layout } = listTables(this.#description.attention, sequences.tables);
    const kind = [layout, ...places.map((place) => dropout.isAt(place))];
    const graphs = this.#graphs.get(kind.join(), (backend) => {
      return this.#build(backend, sequences.tables, dropout);
    });
    if (graphs === null) return null;
    const { forward, backward, pass } = graphs;
    const sizes: Sizes = { batch, length, rows: rows.size };
    const drawn = pass.extra.map(({ name, shape }) => {
      return dropout.mask(name, shape.map((dimension) => valueOf(dimension, sizes)) as [number, number]);
    });
    const { ids, positions } = sequences;
    const inputs = [ids, positions, rows, ...list, ...listWeights(this.#weights), ...drawn];
    const wanted = pass.wanted.map((at) => inputs[at]!);
    return differentiable(wanted, (keep) => {
      const [states, ...kept] = forward.run(inputs, sizes);
      keep([...kept, ...inputs]);
      return {
        value: states as tf.Tensor2D,
        backward: (gradient, saved) => backward.run([gradient, ...saved], sizes),
      };
    });
  }

  dispose(): void {
    this.#graphs.dispose();
  }

  #build(backend: GraphBackend, tables: readonly AttentionTables[], dropout: Dropout): PassGraphs {
    const [pass, again] = tracedSizes.map((sizes) => this.#trace(tables, dropout, sizes)) as [
      TracedPass,
      TracedPass,
    ];
    checkEqual(pass.forward, again.forward);
    checkEqual(pass.backward, again.backward);
    return new PassGraphs(backend, pass);
  }

  #trace(tables: readonly AttentionTables[], dropout: Dropout, sizes: TracedSizes): TracedPass {
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
    return tracePass(
      (given, requestInput) => {
        const left = given.values();
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
          of.map((at) => given[at]!),
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

class PassGraphs {
  readonly pass: TracedPass;
  readonly forward: GraphFunction;
  readonly backward: GraphFunction;

  constructor(backend: GraphBackend, pass: TracedPass) {
    this.pass = pass;
    this.forward = new GraphFunction(backend, pass.forward);
    this.backward = new GraphFunction(backend, pass.backward);
  }

  dispose(): void {
    this.forward.dispose();
    this.backward.dispose();
  }
}

/** One place for each kind of dropout, because a graph is built with or without it. */
const places = ["embedding", ".lora_dropout"];

/** Primes, so that every dimension factors into them. */
const tracedSizes: readonly TracedSizes[] = [
  { batch: 10_007, length: 10_009, rows: 10_037 },
  { batch: 11_003, length: 11_027, rows: 11_047 },
];
