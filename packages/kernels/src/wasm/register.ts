import * as tf from "@tensorflow/tfjs-core";
import { addedKernels, smallProductsKernel } from "./added-kernels.ts";
import { kernelsOf, kernelCall, type KernelCall } from "./instance.ts";

const backendName = "wasm";

/** The fewest values that a loop over vectors can process. */
const leastSize = 4;

/**
 * Registers the kernels of kernels.wat for the wasm backend, unless its memory is not as expected: then its own kernels and
 * operations compute. Results have the same bits. See docs/decisions/wasm-kernels.md.
 */
export function registerWasmKernels(backend: object): void {
  if (tf.getKernel(smallProductsKernel, backendName) !== undefined || kernelsOf(backend) === null) return;
  for (const [kernelName, run] of Object.entries(replacedKernels)) {
    const kernel = tf.getKernel(kernelName, backendName);
    tf.unregisterKernel(kernelName, backendName);
    tf.registerKernel({
      ...kernel,
      kernelFunc(params) {
        const call = kernelCall(params);
        return (call && run(call)) ?? kernel.kernelFunc(params);
      },
    });
  }
  for (const [kernelName, run] of Object.entries(addedKernels))
    tf.registerKernel({ kernelName, backendName, kernelFunc: (params) => run(kernelCall(params)!) });
}

/** x [outer, rows, columns, inner] → [outer, columns, rows, inner]. */
interface Swap {
  readonly outer: number;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/** Returns the order of axes of a transposition as a swap of two neighbouring groups of axes; null if it is none. */
export function swapOf(shape: readonly number[], order: readonly number[]): Swap | null {
  const axes = order.filter((axis) => shape[axis] !== 1);
  const sorted = axes.toSorted((a, b) => a - b);
  const isMoved = (axis: number, i: number) => axis !== sorted[i];
  const start = axes.findIndex(isMoved);
  if (start === -1) return null;
  const end = axes.findLastIndex(isMoved) + 1;
  const middle = end - (axes.indexOf(sorted[start]!) - start);
  const swapped = [...sorted.slice(middle, end), ...sorted.slice(start, middle)];
  if (swapped.some((axis, i) => axis !== axes[start + i])) return null;
  const sizeOf = (from: number, to?: number) =>
    sorted.slice(from, to).reduce((size, axis) => size * shape[axis]!, 1);
  return {
    outer: sizeOf(0, start),
    rows: sizeOf(start, middle),
    columns: sizeOf(middle, end),
    inner: sizeOf(end),
  };
}

/** Kernels of the backend in a faster form; null for a call that the backend's own kernel computes. */
const replacedKernels: Readonly<Record<string, (call: KernelCall) => tf.TensorInfo | null>> = {
  /** Shares the values, as on other backends, instead of copying them. */
  Identity({ inputs, backend }) {
    const { dataId, shape, dtype } = inputs["x"]!;
    if (dtype === "string") return null;
    backend.incRef(dataId);
    return { dataId, shape, dtype };
  },

  /** Swaps two neighbouring axes or groups of axes. */
  Transpose({ inputs, attrs, kernels, backend, at }) {
    const x = inputs["x"]!;
    const order = attrs["perm"] as readonly number[];
    const swap = hasWords(x) ? swapOf(x.shape, order) : null;
    if (swap === null) return null;
    const { outer, rows, columns, inner } = swap;
    if (rows === 0 || (inner === 1 ? Math.min(rows, columns) : inner) < leastSize) return null;
    const shape = order.map((axis) => x.shape[axis]!);
    const out = backend.makeOutput(shape, x.dtype);
    const run = 4 * inner;
    for (let i = 0; i < outer; i++) {
      const [from, to] = [x, out].map((tensor) => at(tensor) + i * rows * columns * run) as [number, number];
      if (inner === 1) {
        kernels.transpose(from, rows, columns, to);
        continue;
      }
      for (let column = 0; column < columns; column++)
        kernels.copyRuns(from + column * run, columns * run, to + column * rows * run, run, rows, inner);
    }
    return out;
  },

  /** Slices columns: cuts the last axis only. */
  Slice({ inputs, attrs, kernels, backend, at }) {
    const x = inputs["x"]!;
    const { begin, size } = attrs as Record<"begin" | "size", number | number[]>;
    const [first, shape] = tf.slice_util.parseSliceParams(x, begin, size) as [number[], number[]];
    const last = x.shape.length - 1;
    const columns = shape[last] ?? 0;
    const isOfRows = x.shape.some((length, axis) => axis < last && length !== shape[axis]);
    if (!hasWords(x) || isOfRows || columns < leastSize || x.shape.includes(0)) return null;
    const out = backend.makeOutput(shape, x.dtype);
    const rows = tf.util.sizeFromShape(shape) / columns;
    kernels.copyRuns(at(x) + 4 * first[last]!, 4 * x.shape[last]!, at(out), 4 * columns, rows, columns);
    return out;
  },

  /** Joins along an axis: copies a run of each input in turn. */
  Concat({ inputs, attrs, kernels, backend, at }) {
    const all = Object.values(inputs);
    const { shape: like, dtype } = all[0]!;
    if (all.length === 1 || !all.every((part) => hasWords(part) && part.dtype === dtype)) return null;
    const [axis] = tf.util.parseAxisParam(attrs["axis"] as number, like) as [number];
    const shapes = all.map(({ shape }) => [...shape]);
    tf.backend_util.assertParamsConsistent(shapes, axis);
    const shape = tf.backend_util.computeOutShape(shapes, axis);
    if (shape.includes(0)) return null;
    const valuesPerRun = (of: readonly number[]) => tf.util.sizeFromShape(of.slice(axis));
    const out = backend.makeOutput(shape, dtype);
    const runs = tf.util.sizeFromShape(shape.slice(0, axis));
    let to = at(out);
    for (const part of all) {
      const size = valuesPerRun(part.shape);
      if (size === 0) continue;
      kernels.copyRuns(at(part), 4 * size, to, 4 * valuesPerRun(shape), runs, size);
      to += 4 * size;
    }
    return out;
  },

  /** The maximum over the last axis. A maximum of 0 or a NaN depends on the order of the comparisons. */
  Max({ inputs, attrs, kernels, backend, at }) {
    const x = inputs["x"]!;
    const { reductionIndices, keepDims } = attrs as {
      readonly reductionIndices: number | number[];
      readonly keepDims: boolean;
    };
    const last = x.shape.length - 1;
    const axes = tf.util.parseAxisParam(reductionIndices, x.shape);
    const columns = x.shape[last] ?? 0;
    if (x.dtype !== "float32" || axes.length !== 1 || axes[0] !== last) return null;
    if (columns < leastSize || x.shape.includes(0)) return null;
    const outer = x.shape.slice(0, -1);
    const out = backend.makeOutput(keepDims ? [...outer, 1] : outer, x.dtype);
    if (kernels.rowMaximum(at(x), tf.util.sizeFromShape(outer), columns, at(out)) === 1) return out;
    backend.disposeData(out.dataId);
    return null;
  },
};

/** Whether each value has four bytes. */
const hasWords = ({ dtype }: tf.TensorInfo): boolean => dtype === "float32" || dtype === "int32";
