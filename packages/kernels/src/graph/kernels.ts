import * as tf from "@tensorflow/tfjs-core";
import { attributesOf, type NativeKernel } from "../native/native-kernels.ts";
import type { Tracer, Value, GraphType } from "./tracer.ts";

/** Translates a call of a TensorFlow.js kernel into TensorFlow operations. */
export type TraceKernel = (
  tracer: Tracer,
  inputs: readonly Value[],
  attributes: Readonly<Record<string, unknown>>,
) => Value | Value[];

const unary =
  (op: string): TraceKernel =>
  (tracer, [x]) =>
    tracer.node(op, [x!], { T: { type: x!.type } }, x!);

const binary =
  (op: string): TraceKernel =>
  (tracer, [a, b]) => {
    const shape = tf.backend_util.assertAndGetBroadcastShape([...a!.shape], [...b!.shape]);
    return tracer.node(op, [a!, b!], { T: { type: a!.type } }, { type: a!.type, shape });
  };

const reduction =
  (op: string, axes: "axis" | "reductionIndices"): TraceKernel =>
  (tracer, [x], attributes) => {
    const along = tf.util.parseAxisParam(attributes[axes] as number | number[], [...x!.shape]);
    const keepDims = attributes["keepDims"] as boolean;
    const shape = x!.shape.flatMap((size, axis) => (!along.includes(axis) ? [size] : keepDims ? [1] : []));
    const parameters = {
      T: { type: x!.type },
      Tidx: { type: "int32" },
      keep_dims: { b: keepDims },
    } as const;
    return tracer.node(op, [x!, tracer.integers(along)], parameters, { type: x!.type, shape });
  };

/** Records a kernel of `native/` whose results have the shapes of the inputs at `like`. */
const native =
  (name: NativeKernel, like: readonly number[] = [0]): TraceKernel =>
  (tracer, inputs, parameters) => {
    const alike = like.map((at) => inputs[at]!);
    const node = tracer.node(name, inputs, attributesOf(parameters), alike[0]!);
    return like.length === 1 ? node : outputsOf(tracer, node, alike);
  };

/** Returns all results of a node that has several. */
function outputsOf(tracer: Tracer, node: Value, outputs: readonly Pick<Value, "type" | "shape">[]): Value[] {
  return outputs.map(({ type, shape }, at) =>
    tracer.note({ name: at === 0 ? node.name : `${node.name}:${at}`, type, shape }),
  );
}

/** The kernels that can be traced, by their names in TensorFlow.js. */
export const traceKernels: Readonly<Record<string, TraceKernel>> = {
  PeriodicRmsNorm: native("PeriodicRmsNorm"),
  PeriodicRmsNormGradient: native("PeriodicRmsNormGradient", [1, 2]),
  PeriodicLayerNorm: native("PeriodicLayerNorm"),
  PeriodicLayerNormGradient: native("PeriodicLayerNormGradient", [1, 2, 2]),
  PeriodicGatedSilu: native("PeriodicGatedSilu"),
  PeriodicGatedSiluGradient: native("PeriodicGatedSiluGradient", [1, 1]),
  PeriodicGeluTanh: native("PeriodicGeluTanh"),
  PeriodicGeluTanhGradient: native("PeriodicGeluTanhGradient"),
  PeriodicMaskedSoftmax: native("PeriodicMaskedSoftmax"),
  PeriodicSoftmaxGradient: native("PeriodicSoftmaxGradient"),
  PeriodicRotate: native("PeriodicRotate"),
  PeriodicAttend: native("PeriodicAttend"),
  PeriodicMatMul(tracer, [x, w]) {
    const shape = [x!.shape[0]!, w!.shape[1]! * (w!.type === "int32" ? 2 : 1)];
    return tracer.node("PeriodicMatMul", [x!, w!], { W: { type: w!.type } }, { type: x!.type, shape });
  },

  Add: binary("AddV2"),
  Sub: binary("Sub"),
  Multiply: binary("Mul"),
  RealDiv: binary("RealDiv"),
  Square: unary("Square"),
  Rsqrt: unary("Rsqrt"),
  Sqrt: unary("Sqrt"),
  Sigmoid: unary("Sigmoid"),
  Erf: unary("Erf"),
  Relu: unary("Relu"),
  Neg: unary("Neg"),
  Log: unary("Log"),
  Identity: (_, [x]) => x!,
  Softmax: unary("Softmax"),
  Mean: reduction("Mean", "axis"),
  Sum: reduction("Sum", "axis"),
  Max: reduction("Max", "reductionIndices"),

  /** TensorFlow.js has an option for the slope below 0, which is 0 here. */
  Step(tracer, [x]) {
    const parameters = { T: { type: x!.type } };
    return tracer.node("Sign", [tracer.node("Relu", [x!], parameters, x!)], parameters, x!);
  },

  NotEqual(tracer, [a, b]) {
    const shape = tf.backend_util.assertAndGetBroadcastShape([...a!.shape], [...b!.shape]);
    return tracer.node("NotEqual", [a!, b!], { T: { type: a!.type } }, { type: "bool", shape });
  },

  Cast(tracer, [x], attributes) {
    const type = attributes["dtype"] as GraphType;
    const parameters = { SrcT: { type: x!.type }, DstT: { type } };
    return x!.type === type ? x! : tracer.node("Cast", [x!], parameters, { type, shape: x!.shape });
  },

  BatchMatMul(tracer, [a, b], attributes) {
    const [adjX, adjY] = [attributes["transposeA"] as boolean, attributes["transposeB"] as boolean];
    const rows = a!.shape.at(adjX ? -1 : -2)!;
    const columns = b!.shape.at(adjY ? -2 : -1)!;
    const batch = tf.backend_util.assertAndGetBroadcastShape(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
    const of = { type: a!.type, shape: [...batch, rows, columns] };
    const T = { type: a!.type };
    // For one row, MatMul takes three quarters of the time of BatchMatMul.
    return a!.shape.length === 2 && b!.shape.length === 2
      ? tracer.node("MatMul", [a!, b!], { T, transpose_a: { b: adjX }, transpose_b: { b: adjY } }, of)
      : tracer.node("BatchMatMulV2", [a!, b!], { T, adj_x: { b: adjX }, adj_y: { b: adjY } }, of);
  },

  Reshape(tracer, [x], attributes) {
    const shape = tf.util.inferFromImplicitShape(
      attributes["shape"] as number[],
      tf.util.sizeFromShape([...x!.shape]),
    );
    const parameters = { T: { type: x!.type }, Tshape: { type: "int32" } } as const;
    return tracer.node("Reshape", [x!, tracer.shape(shape)], parameters, { type: x!.type, shape });
  },

  Transpose(tracer, [x], attributes) {
    const order = attributes["perm"] as number[];
    const parameters = { T: { type: x!.type }, Tperm: { type: "int32" } } as const;
    const shape = order.map((axis) => x!.shape[axis]!);
    return tracer.node("Transpose", [x!, tracer.integers(order)], parameters, { type: x!.type, shape });
  },

  Concat(tracer, inputs, attributes) {
    const [first] = inputs as [Value];
    const axis = tf.util.parseAxisParam(attributes["axis"] as number, [...first.shape])[0]!;
    const shape = tf.backend_util.computeOutShape(
      inputs.map((x) => [...x.shape]),
      axis,
    );
    const parameters = { N: { i: inputs.length }, T: { type: first.type }, Tidx: { type: "int32" } } as const;
    return tracer.node("ConcatV2", [...inputs, tracer.integer(axis)], parameters, {
      type: first.type,
      shape,
    });
  },

  Pack(tracer, inputs, attributes) {
    const [first] = inputs as [Value];
    const axis = attributes["axis"] as number;
    const parameters = { N: { i: inputs.length }, T: { type: first.type }, axis: { i: axis } } as const;
    const shape = first.shape.toSpliced(axis, 0, inputs.length);
    return tracer.node("Pack", inputs, parameters, { type: first.type, shape });
  },

  SplitV(tracer, [x], attributes) {
    const axis = tf.util.parseAxisParam(attributes["axis"] as number, [...x!.shape])[0]!;
    const wanted = attributes["numOrSizeSplits"] as number | number[];
    const sizes = tf.backend_util.prepareSplitSize({ shape: [...x!.shape] } as tf.Tensor, wanted, axis);
    const parameters = {
      T: { type: x!.type },
      Tlen: { type: "int32" },
      num_split: { i: sizes.length },
    } as const;
    const inputs = [x!, tracer.integers(sizes), tracer.integer(axis)];
    const ofParts = sizes.map((size) => ({ type: x!.type, shape: x!.shape.with(axis, size) }));
    return outputsOf(tracer, tracer.node("SplitV", inputs, parameters, x!), ofParts);
  },

  Slice(tracer, [x], attributes) {
    const begin = attributes["begin"] as number[];
    const sizes = attributes["size"] as number[];
    const shape = x!.shape.map((all, axis) => (sizes[axis] === -1 ? all - begin[axis]! : sizes[axis]!));
    const parameters = { T: { type: x!.type }, Index: { type: "int32" } } as const;
    // −1 means to the end, which may be an open size.
    const wanted = shape.map((size, axis) => (size === x!.shape[axis]! - begin[axis]! ? -1 : size));
    const inputs = [x!, tracer.integers(begin), tracer.integers(wanted)];
    return tracer.node("Slice", inputs, parameters, { type: x!.type, shape });
  },

  PadV2(tracer, [x], attributes) {
    const paddings = attributes["paddings"] as [number, number][];
    if (attributes["constantValue"] !== 0)
      throw new Error("a traced function pads with a number other than 0");
    const parameters = { T: { type: x!.type }, Tpaddings: { type: "int32" } } as const;
    const shape = x!.shape.map((size, axis) => paddings[axis]![0] + size + paddings[axis]![1]);
    const around = tracer.constant({
      type: "int32",
      shape: [paddings.length, 2],
      values: Int32Array.from(paddings.flat()),
    });
    return tracer.node("Pad", [x!, around], parameters, { type: x!.type, shape });
  },

  Tile(tracer, [x], attributes) {
    const repeats = attributes["reps"] as number[];
    const parameters = { T: { type: x!.type }, Tmultiples: { type: "int32" } } as const;
    const shape = x!.shape.map((size, axis) => size * repeats[axis]!);
    return tracer.node("Tile", [x!, tracer.integers(repeats)], parameters, { type: x!.type, shape });
  },

  GatherNd(tracer, [table, indices]) {
    const depth = indices!.shape.at(-1)!;
    const shape = [...indices!.shape.slice(0, -1), ...table!.shape.slice(depth)];
    const parameters = { Tparams: { type: table!.type }, Tindices: { type: "int32" } } as const;
    return tracer.node("GatherNd", [table!, indices!], parameters, { type: table!.type, shape });
  },

  ScatterNd(tracer, [indices, updates], attributes) {
    const shape = attributes["shape"] as number[];
    const parameters = { T: { type: updates!.type }, Tindices: { type: "int32" } } as const;
    return tracer.node("ScatterNd", [indices!, updates!, tracer.sizes(shape)], parameters, {
      type: updates!.type,
      shape,
    });
  },
};
