import * as tf from "@tensorflow/tfjs-core";
import type { Tracer, GraphNode, Dimension, Sizes } from "./tracer.ts";
import { whileTracing, type TensorSpec, type Trace } from "./trace.ts";

/** A differentiable function of tensors as two graphs. */
export interface TracedPass {
  /** Outputs the function's value, then the tensors that the backward pass needs. */
  readonly forward: Trace;
  /** Takes the gradient of the value, the kept tensors and the arguments; outputs the gradients of `wanted`. */
  readonly backward: Trace;
  /** Indexes of the arguments that have a gradient, among those requested. */
  readonly wanted: readonly number[];
  /** Inputs that the function requested while it ran, in order; they follow the other arguments. */
  readonly extra: readonly ExtraInput[];
}

/** A float32 tensor that a function requests by name. */
export interface ExtraInput {
  readonly name: string;
  readonly shape: readonly Dimension[];
}

/** Returns a tensor of this shape; each run supplies the one with this name. */
export type RequestInput = (name: string, shape: readonly number[]) => tf.Tensor;

/**
 * Traces a differentiable function like `trace`. Traces it together with the gradients of its value (of shape `shape`) in
 * the inputs at `of`, and cuts the graph where the function has its value. Tensors used after the cut are kept.
 */
export function tracePass(
  run: (inputs: readonly tf.Tensor[], requestInput: RequestInput) => tf.Tensor,
  inputs: readonly TensorSpec[],
  of: readonly number[],
  shape: readonly number[],
  sizes: Sizes,
): TracedPass {
  return whileTracing(sizes, (tracer, tensors) => {
    const values = inputs.map((spec) => tracer.input(spec.type, spec.shape));
    const gradient = tracer.input("float32", shape);
    const args = values.map(tensors.of);
    const extra: ExtraInput[] = [];
    const requestInput: RequestInput = (name, wanted) => {
      const value = tracer.input("float32", wanted);
      values.push(value);
      extra.push({ name, shape: wanted.map((size) => tracer.dimension(size)) });
      return tensors.of(value);
    };
    let cut = 0;
    const { value, grads } = tf.engine().gradients(
      () => {
        const value = run(args, requestInput);
        cut = tracer.nodes.length;
        return value;
      },
      of.map((at) => args[at]!),
      tensors.of(gradient),
      true,
    );
    // Inputs that the value does not depend on have no gradient.
    const inputGradients = (grads as readonly (tf.Tensor | undefined)[]).flatMap((each, i) =>
      each === undefined ? [] : [{ at: of[i]!, name: tracer.output(tensors.valueOf(each)).name }],
    );
    const isKept = (name: string) => {
      const node = tracer.nodeOf(name);
      return tracer.indexOf(name) < cut && node.op !== "Placeholder" && node.op !== "Const";
    };
    const names = values.map(({ name }) => name);
    const wanted = [...inputGradients.map(({ name }) => name), gradient.name, ...names];
    const used = reachedFrom(tracer, wanted, isKept);
    const again = resultsToRepeat(tracer, used, { arguments: new Set(names), cut });
    const back = reachedFrom(tracer, wanted, (name) => isKept(name) && !again.values.has(name));
    const saved = back.stops.map((name) => tracer.values.get(name)!);
    const placeholders = new Map(saved.map((each, i) => [each.name, tracer.placeholder(`k${i}`, each)]));
    const renamed = (name: string) => placeholders.get(name)?.name ?? name;
    // The Identity nodes keep these values: on CPUs with AVX-512 oneDNN merges x · sigmoid(x) into one operation even if
    // the sigmoid is also an output.
    const results = saved.map((each) => tracer.node("Identity", [each], { T: { type: each.type } }, each));
    const outputs = [tracer.output(tensors.valueOf(value)).name, ...results.map(({ name }) => name)];
    const graph = (
      nodes: readonly GraphNode[],
      inputs: readonly string[],
      outputs: readonly string[],
    ): Trace => {
      const present = new Set(nodes.map(({ name }) => name));
      return {
        nodes,
        inputs,
        shapes: tracer.shapeInputs.filter(({ name }) => present.has(name)),
        outputs,
      };
    };
    const ahead = reachedFrom(tracer, [...outputs, ...names], () => false);
    return {
      forward: graph(ahead.nodes, names, outputs),
      backward: graph(
        [
          ...placeholders.values(),
          ...back.nodes.map((node) => again.inOrder(node, node.inputs.map(renamed))),
        ],
        [gradient.name, ...saved.map(({ name }) => renamed(name)), ...names],
        inputGradients.map(({ name }) => renamed(name)),
      ),
      wanted: inputGradients.map(({ at }) => at),
      extra,
    };
  });
}

/** Returns the node with these inputs, and with control edges that delay it until its result is needed. */
type InOrder = (node: GraphNode, inputs: readonly string[]) => GraphNode;

interface Reached {
  readonly nodes: readonly GraphNode[];
  readonly stops: readonly string[];
}

/** Operations that the backward pass repeats, because that is cheap and keeping their results takes much memory. */
const repeatedOps: ReadonlySet<string> = new Set([
  "Mul",
  "PeriodicRmsNorm",
  "PeriodicLayerNorm",
  "PeriodicGatedSilu",
  "PeriodicGeluTanh",
]);

/**
 * Finds results of these operations on kept values or arguments, such as the output of a norm. The backward pass repeats them with
 * the same bits instead of keeping them.
 *
 * @returns The names of the results, and a function that delays their nodes: otherwise TensorFlow would compute all of them at
 *   the start of the backward pass.
 */
function resultsToRepeat(
  tracer: Tracer,
  { nodes, stops }: Reached,
  { arguments: args, cut }: { readonly arguments: ReadonlySet<string>; readonly cut: number },
): { readonly values: ReadonlySet<string>; inOrder: InOrder } {
  const saved = new Set(stops);
  const values = new Set<string>();
  const waits = new Map<string, readonly string[]>();
  const isThere = (name: string) =>
    args.has(name) || (saved.has(name) && !values.has(name)) || tracer.nodeOf(name).op === "Const";
  for (const value of stops.toSorted((a, b) => tracer.indexOf(a) - tracer.indexOf(b))) {
    const node = tracer.nodeOf(value);
    const source = node.op === "Reshape" ? tracer.nodeOf(node.inputs[0]!) : node;
    if (!repeatedOps.has(source.op) || !source.inputs.every(isThere)) continue;
    // The edge makes no cycle: the first node that uses the value takes this gradient as input, so the gradient cannot depend on it.
    const gradient = nodes
      .find(({ inputs }) => inputs.includes(value))!
      .inputs.find((input) => input !== value && tracer.indexOf(input) >= cut);
    if (gradient === undefined) continue;
    values.add(value).add(source.name);
    waits.set(source.name, [`^${tracer.nodeOf(gradient).name}`]);
  }
  const inOrder: InOrder = (node, inputs) => ({
    ...node,
    inputs: [...inputs, ...(waits.get(node.name) ?? [])],
  });
  return { values, inOrder };
}

/** Returns the nodes that these values depend on, in the order of the trace, without going past values that are stops. */
function reachedFrom(tracer: Tracer, values: readonly string[], isStop: (value: string) => boolean): Reached {
  const nodes = new Set<GraphNode>();
  const stops = new Set<string>();
  const left = [...values];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (isStop(value)) {
      stops.add(value);
      continue;
    }
    const node = tracer.nodeOf(value);
    if (nodes.has(node)) continue;
    nodes.add(node);
    left.push(...node.inputs);
  }
  return { nodes: tracer.nodes.filter((node) => nodes.has(node)), stops: [...stops].sort() };
}
