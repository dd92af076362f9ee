import * as tf from "@tensorflow/tfjs-core";
import type { Dimension, Sizes } from "./dimensions.ts";
import type { GraphNode } from "./node.ts";
import { whileTracing, type TensorSpec, type Trace } from "./trace.ts";
import type { Tracer } from "./tracer.ts";

/** A differentiable function of tensors as two graphs. */
export interface TracedPass {
  /** Gives the function's value, then what the backward pass wants kept. */
  readonly forward: Trace;
  /** Takes the gradient of the value, what was kept, and the arguments; gives gradients of `wanted`. */
  readonly backward: Trace;
  /** Which arguments have a gradient, by their place among those asked for. */
  readonly wanted: readonly number[];
  /** What the function asked for on its way, in order: arguments behind the others. */
  readonly extra: readonly ExtraInput[];
}

/** A float32 tensor that a function asks for by name. */
export interface ExtraInput {
  readonly name: string;
  readonly shape: readonly Dimension[];
}

/** Gives a tensor of this shape, that of the name at each run. */
export type AskFor = (name: string, shape: readonly number[]) => tf.Tensor;

/**
 * As `trace`, of a function that is differentiated: it and the gradients of its value (of shape `shape`) in the inputs at
 * `of` are traced together, and cut where the function has its value. What is used behind the cut is what is kept.
 */
export function tracePass(
  run: (inputs: readonly tf.Tensor[], askFor: AskFor) => tf.Tensor,
  inputs: readonly TensorSpec[],
  of: readonly number[],
  shape: readonly number[],
  sizes: Sizes,
): TracedPass {
  return whileTracing(sizes, (tracer, tensors) => {
    const values = inputs.map((spec) => tracer.input(spec.type, spec.shape));
    const gradient = tracer.input("float32", shape);
    const given = values.map(tensors.of);
    const extra: ExtraInput[] = [];
    const askFor: AskFor = (name, wanted) => {
      const value = tracer.input("float32", wanted);
      values.push(value);
      extra.push({ name, shape: wanted.map((size) => tracer.dimension(size)) });
      return tensors.of(value);
    };
    let cut = 0;
    const { value, grads } = tf.engine().gradients(
      () => {
        const made = run(given, askFor);
        cut = tracer.nodes.length;
        return made;
      },
      of.map((at) => given[at]!),
      tensors.of(gradient),
      true,
    );
    // Of what the value does not depend on there is none.
    const found = (grads as readonly (tf.Tensor | undefined)[]).flatMap((each, i) =>
      each === undefined ? [] : [{ at: of[i]!, name: tracer.output(tensors.valueOf(each)).name }],
    );
    const isKept = (name: string) => {
      const node = tracer.nodeOf(name);
      return tracer.indexOf(name) < cut && node.op !== "Placeholder" && node.op !== "Const";
    };
    const names = values.map(({ name }) => name);
    const back = reachedFrom(tracer, [...found.map(({ name }) => name), gradient.name, ...names], isKept);
    const kept = back.stops.map((name) => tracer.values.get(name)!);
    const placeholders = new Map(kept.map((each, i) => [each.name, tracer.placeholder(`k${i}`, each)]));
    const renamed = (name: string) => placeholders.get(name)?.name ?? name;
    // Read as they are, they may be gone: on processors with AVX-512 oneDNN merges x · sigmoid(x) into one operation, and
    // does not look whether the sigmoid is also a result.
    const results = kept.map((each) => tracer.node("Identity", [each], { T: { type: each.type } }, each));
    const outputs = [tracer.output(tensors.valueOf(value)).name, ...results.map(({ name }) => name)];
    const graph = (nodes: readonly GraphNode[], taken: readonly string[], made: readonly string[]): Trace => {
      const present = new Set(nodes.map(({ name }) => name));
      return {
        nodes,
        inputs: taken,
        shapes: tracer.shapeInputs.filter(({ name }) => present.has(name)),
        outputs: made,
      };
    };
    const ahead = reachedFrom(tracer, [...outputs, ...names], () => false);
    return {
      forward: graph(ahead.nodes, names, outputs),
      backward: graph(
        [
          ...placeholders.values(),
          ...back.nodes.map((node) => ({ ...node, inputs: node.inputs.map(renamed) })),
        ],
        [gradient.name, ...kept.map(({ name }) => renamed(name)), ...names],
        found.map(({ name }) => renamed(name)),
      ),
      wanted: found.map(({ at }) => at),
      extra,
    };
  });
}

/** The nodes that these values are made of, in the order of the trace; of a value that is a stop, nothing. */
function reachedFrom(
  tracer: Tracer,
  values: readonly string[],
  isStop: (value: string) => boolean,
): { readonly nodes: readonly GraphNode[]; readonly stops: readonly string[] } {
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
