import { process } from "@periodic-eval/store/platform";
import { errorMessage } from "@periodic-eval/contracts/options";
import { graphBackend, type GraphBackend } from "./graph-function.ts";

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
