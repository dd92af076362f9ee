import { errorMessage } from "@periodic-eval/core/internal";
import { graphBackend, type GraphBackend } from "./graph-function.ts";

/** Graphs by their kind, each made when it is first wanted. After one that could not be made there are none. */
export class GraphSet<Graph extends { dispose(): void }> {
  readonly #doing: string;
  readonly #graphs = new Map<string, Graph>();
  #isBroken = false;

  /** @param doing what runs slower without them, as the begin of a sentence */
  constructor(doing: string) {
    this.#doing = doing;
  }

  /** Null where the engine runs no graphs, or could not make one, which is told once by a process warning. */
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
        `${this.#doing} runs slower than it could: TensorFlow's graph of it was not made (${errorMessage(error)}). Results are the same up to rounding.`,
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
