import { fusedCallKernel, type FusedCall } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { GraphFunction } from "./graph-function.ts";
import { GraphSet } from "./graph-set.ts";
import type { GraphType } from "./node.ts";
import { trace } from "./trace.ts";

/** Registers a kernel with which native TensorFlow runs each `FusedCall` as a graph, one for each combination of shapes. */
export function registerFusedCalls(): void {
  const backendName = "tensorflow";
  if (tf.getKernel(fusedCallKernel, backendName) !== undefined) return;
  tf.registerKernel({
    kernelName: fusedCallKernel,
    backendName,
    kernelFunc({ inputs, attrs }) {
      const given = Object.values(inputs) as tf.Tensor[];
      const { call } = attrs as unknown as { readonly call: FusedCall };
      const graphs = (call.held ??= new GraphSet<GraphFunction>(call.doing)) as GraphSet<GraphFunction>;
      const specs = given.map(({ dtype, shape }) => ({ type: dtype as GraphType, shape }));
      const graph = graphs.get(JSON.stringify(specs), (backend) => {
        return new GraphFunction(backend, trace(call.run, specs, {}));
      });
      return graph === null ? call.run(given) : graph.run(given, {});
    },
  });
}
