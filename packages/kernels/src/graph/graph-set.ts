import * as tf from "@tensorflow/tfjs-core";
import { errorMessage } from "@periodic-eval/contracts/options";
import { process } from "@periodic-eval/store/platform";
import { fusedCallKernel, type FusedCall } from "@periodic-eval/tfjs";
import { GraphFunction, graphBackend, type GraphBackend } from "./graph-function.ts";
import { trace } from "./trace.ts";
import type { GraphType } from "./tracer.ts";

/** Graphs by kind, each built on first use. After a failed build the set returns none. */
export class GraphSet<Graph extends { dispose(): void }> {
  readonly #doing: string;
  readonly #graphs = new Map<string, Graph>();
  #isBroken = false;

  /** @param doing Names the work that is slower without graphs, as the start of a sentence. */
  constructor(doing: string) {
    this.#doing = doing;
  }

  /** Returns null if the backend runs no graphs or a build failed; a process warning reports the failure once. */
  get(kind: string, make: (backend: GraphBackend) => Graph): Graph | null {
    const backend = graphBackend();
    if (backend === null || this.#isBroken) return null;
    try {
      const graph = this.#graphs.get(kind) ?? make(backend);
      this.#graphs.set(kind, graph);
      return graph;
    } catch (error) {
      this.#isBroken = true;
      process.emitWarning(
        `${this.#doing} runs without a TensorFlow graph and slower, because building it failed (${errorMessage(error)}). Results are the same up to rounding.`,
        { code: "PERIODIC_EVAL_GRAPH" },
      );
      return null;
    }
  }

  dispose(): void {
    for (const graph of this.#graphs.values()) graph.dispose();
    this.#graphs.clear();
  }
}

/** Registers a kernel with which native TensorFlow runs each `FusedCall` as a graph, one for each combination of shapes. */
export function registerFusedCalls(): void {
  const backendName = "tensorflow";
  if (tf.getKernel(fusedCallKernel, backendName) !== undefined) return;
  tf.registerKernel({
    kernelName: fusedCallKernel,
    backendName,
    kernelFunc({ inputs, attrs }) {
      const tensors = Object.values(inputs) as tf.Tensor[];
      const { call } = attrs as unknown as { readonly call: FusedCall };
      const graphs = (call.held ??= new GraphSet<GraphFunction>(call.doing)) as GraphSet<GraphFunction>;
      const specs = tensors.map(({ dtype, shape }) => ({ type: dtype as GraphType, shape }));
      const graph = graphs.get(JSON.stringify(specs), (backend) => {
        return new GraphFunction(backend, trace(call.run, specs, {}));
      });
      return graph === null ? call.run(tensors) : graph.run(tensors, {});
    },
  });
}
