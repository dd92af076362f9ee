import { join, mkdtempSync, rmSync, tmpdir, writeFileSync } from "@periodic-eval/store/platform";
import { isOnDevice } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { valueOf, type Sizes } from "./dimensions.ts";
import { savedModel, savedModelTag } from "./saved-model.ts";
import type { Trace } from "./trace.ts";

/** Methods of the tfjs-node backend that run graphs; its `tf.node.loadSavedModel` uses them too. */
export interface GraphBackend {
  loadSavedModelMetaGraph(folder: string, tags: string): number;
  runSavedModel(
    session: number,
    inputs: readonly tf.Tensor[],
    infos: readonly { readonly name: string }[],
    outputs: readonly string[],
  ): tf.Tensor[];
  deleteSavedModel(session: number): void;
}

/**
 * Returns the current backend if it runs graphs, else null. Not on a GPU: tfjs-node copies every input of a graph to the host and
 * every output back, also weights.
 */
export function graphBackend(): GraphBackend | null {
  if (tf.getBackend() !== "tensorflow" || isOnDevice()) return null;
  return tf.backend() as unknown as GraphBackend;
}

/** A graph that TensorFlow runs in one call. */
export class GraphFunction {
  readonly #backend: GraphBackend;
  readonly #shapes: Trace["shapes"];
  readonly #session: number;
  readonly #inputs: readonly { readonly name: string }[];
  readonly #outputs: readonly string[];

  constructor(backend: GraphBackend, trace: Trace) {
    this.#backend = backend;
    this.#shapes = trace.shapes;
    const folder = mkdtempSync(join(tmpdir(), "periodic-eval-graph-"));
    try {
      writeFileSync(join(folder, "saved_model.pb"), savedModel(trace.nodes));
      this.#session = backend.loadSavedModelMetaGraph(folder, savedModelTag);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const { inputs, shapes, outputs } = trace;
    const names = [...inputs, ...shapes.map(({ name }) => name)];
    this.#inputs = names.map((name) => ({ name: `${name}:0` }));
    this.#outputs = outputs.map((name) => (name.includes(":") ? name : `${name}:0`));
  }

  /** Runs the graph. The outputs belong to the surrounding `tf.tidy`, or to the caller. */
  run(inputs: readonly tf.Tensor[], sizes: Sizes): tf.Tensor[] {
    const given = this.#shapes.map(({ dimensions }) =>
      tf.tensor1d(
        dimensions.map((dimension) => valueOf(dimension, sizes)),
        "int32",
      ),
    );
    try {
      return this.#backend.runSavedModel(this.#session, [...inputs, ...given], this.#inputs, this.#outputs);
    } finally {
      tf.dispose(given);
    }
  }

  dispose(): void {
    this.#backend.deleteSavedModel(this.#session);
  }
}
