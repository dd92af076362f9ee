import * as tf from "@tensorflow/tfjs-core";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { join, mkdtempSync, rmSync, tmpdir, writeFileSync } from "@periodic-eval/store/platform";
import { isOnDevice } from "@periodic-eval/tfjs";
import {
  type Attribute,
  type ConstantTensor,
  type GraphNode,
  type GraphType,
  valueOf,
  type Sizes,
} from "./tracer.ts";
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
    const shapes = this.#shapes.map(({ dimensions }) =>
      tf.tensor1d(
        dimensions.map((dimension) => valueOf(dimension, sizes)),
        "int32",
      ),
    );
    try {
      return this.#backend.runSavedModel(this.#session, [...inputs, ...shapes], this.#inputs, this.#outputs);
    } finally {
      tf.dispose(shapes);
    }
  }

  dispose(): void {
    this.#backend.deleteSavedModel(this.#session);
  }
}

/** The tag of the graph in its file. */
const savedModelTag = "serve";

/**
 * Serializes a graph as TensorFlow's `saved_model.pb`, without variables, signatures and functions. Field numbers come from
 * tensorflow/core/protobuf/{saved_model,meta_graph}.proto and tensorflow/core/framework/*.proto.
 */
function savedModel(nodes: readonly GraphNode[]): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.Varint).int64(schemaVersion);
  message(writer, 2, (metaGraph) => {
    message(metaGraph, 1, (info) => info.tag(4, WireType.LengthDelimited).string(savedModelTag));
    message(metaGraph, 2, (graph) => {
      for (const node of nodes) message(graph, 1, (out) => writeNode(out, node));
      message(graph, 4, (versions) => versions.tag(1, WireType.Varint).int32(graphProducer));
    });
  });
  return writer.finish();
}

const schemaVersion = 1;
/** The version of the graph format: that of TensorFlow 2.9, the oldest that tfjs-node 4.22 supports. */
const graphProducer = 1087;

const types: Readonly<Record<GraphType, number>> = { float32: 1, int32: 3, bool: 10 };

function message(writer: BinaryWriter, field: number, write: (out: BinaryWriter) => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  write(writer);
  writer.join();
}

function writeNode(out: BinaryWriter, { name, op, inputs, attributes }: GraphNode): void {
  out.tag(1, WireType.LengthDelimited).string(name);
  out.tag(2, WireType.LengthDelimited).string(op);
  for (const input of inputs) out.tag(3, WireType.LengthDelimited).string(input);
  for (const [key, value] of Object.entries(attributes)) {
    message(out, 5, (entry) => {
      entry.tag(1, WireType.LengthDelimited).string(key);
      message(entry, 2, (attribute) => writeAttribute(attribute, value));
    });
  }
}

function writeAttribute(out: BinaryWriter, attribute: Attribute): void {
  if ("i" in attribute) out.tag(3, WireType.Varint).int64(attribute.i);
  else if ("f" in attribute) out.tag(4, WireType.Bit32).float(attribute.f);
  else if ("b" in attribute) out.tag(5, WireType.Varint).bool(attribute.b);
  else if ("type" in attribute) out.tag(6, WireType.Varint).int32(types[attribute.type]);
  else if ("shape" in attribute) message(out, 7, (shape) => writeShape(shape, attribute.shape));
  else message(out, 8, (tensor) => writeTensor(tensor, attribute.tensor));
}

function writeShape(out: BinaryWriter, shape: readonly number[]): void {
  for (const size of shape) message(out, 2, (dimension) => dimension.tag(1, WireType.Varint).int64(size));
}

function writeTensor(out: BinaryWriter, { type, shape, values }: ConstantTensor): void {
  out.tag(1, WireType.Varint).int32(types[type]);
  message(out, 2, (proto) => writeShape(proto, shape));
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  out.tag(4, WireType.LengthDelimited).bytes(bytes);
}
