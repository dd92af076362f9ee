import * as tf from "@tensorflow/tfjs-core";
import { Tracer, type ShapeInput, type Value, type GraphNode, type GraphType, type Sizes } from "./tracer.ts";
import { tracingName } from "../native/native-kernels.ts";
import { traceKernels } from "./kernels.ts";

/** The type and shape of a graph's input. */
export interface TensorSpec {
  readonly type: GraphType;
  readonly shape: readonly number[];
}

/** A function of tensors as a graph. */
export interface Trace {
  readonly nodes: readonly GraphNode[];
  /** Names of the nodes of the function's arguments, in order. */
  readonly inputs: readonly string[];
  readonly shapes: readonly ShapeInput[];
  readonly outputs: readonly string[];
}

/**
 * Traces a function of tensors into a graph in which `sizes` are open. Runs the function once without computing: its
 * tensors have shapes but no values, and its JavaScript sees `sizes` as the open dimensions. Use large primes as sizes, so
 * that every dimension factors into them.
 *
 * @throws Error if the function calls an unsupported kernel or reads a tensor that is not an argument.
 */
export function trace(
  run: (inputs: readonly tf.Tensor[]) => readonly tf.Tensor[],
  inputs: readonly TensorSpec[],
  sizes: Sizes,
): Trace {
  return whileTracing(sizes, (tracer, tensors) => {
    const values = inputs.map(({ type, shape }) => tracer.input(type, shape));
    const results = run(values.map(tensors.of));
    const outputs = results.map((tensor) => tracer.output(tensors.valueOf(tensor)).name);
    // The function may have kept some of them.
    tf.dispose([...results]);
    return {
      nodes: tracer.nodes,
      inputs: values.map(({ name }) => name),
      shapes: tracer.shapeInputs,
      outputs,
    };
  });
}

/** Throws unless two traces with different sizes are the same graph. */
export function checkEqual(first: Trace, other: Trace): void {
  const [a, b] = [first, other].map(({ nodes, shapes, outputs }) => JSON.stringify([nodes, shapes, outputs]));
  if (a !== b) throw new Error("the function depends on sizes in a way that a graph cannot express");
}

/** Converts between values of the trace and tensors without data. */
export interface TracedTensors {
  of(value: Value): tf.Tensor;
  valueOf(tensor: tf.Tensor): Value;
}

/** Runs a function on tensors without data, and records its operations. */
export function whileTracing<T>(sizes: Sizes, run: (tracer: Tracer, tensors: TracedTensors) => T): T {
  const before = tf.getBackend();
  const tracing = tracingBackend();
  const tracer = new Tracer(sizes);
  tracing.begin(tracer);
  const tensors: TracedTensors = {
    of: (value) => tracing.tensorOf(value),
    valueOf: ({ dataId }) => tracing.get(dataId),
  };
  try {
    void tf.setBackend(tracingName);
    tf.engine().startScope();
    return run(tracer, tensors);
  } finally {
    tf.engine().endScope();
    void tf.setBackend(before);
    tracing.end();
  }
}

let registered: TracingBackend | null = null;

function tracingBackend(): TracingBackend {
  if (registered !== null) return registered;
  const backend = new TracingBackend();
  // The negative priority prevents TensorFlow.js from choosing it.
  tf.registerBackend(tracingName, () => backend, -1);
  for (const [kernelName, kernel] of Object.entries(traceKernels)) {
    tf.registerKernel({
      kernelName,
      backendName: tracingName,
      kernelFunc({ inputs, attrs }) {
        const values = (Object.values(inputs) as tf.TensorInfo[]).map(({ dataId }) => backend.get(dataId));
        const results = kernel(backend.tracer, values, attrs ?? {});
        return Array.isArray(results)
          ? results.map((value) => backend.infoOf(value))
          : backend.infoOf(results);
      },
    });
  }
  registered = backend;
  return backend;
}

/** A backend that holds types and shapes of tensors instead of their data. */
class TracingBackend extends tf.KernelBackend {
  #tracer: Tracer | null = null;
  #values = new Map<tf.DataId, Value>();

  begin(tracer: Tracer): void {
    this.#tracer = tracer;
  }

  /** Clears the trace. */
  end(): void {
    this.#tracer = null;
    this.#values.clear();
  }

  get tracer(): Tracer {
    return this.#tracer!;
  }

  get(dataId: tf.DataId): Value {
    const value = this.#values.get(dataId);
    if (value === undefined) throw new Error("a traced function reads a tensor that is not an argument");
    return value;
  }

  infoOf(value: Value): tf.TensorInfo {
    const dataId = {};
    this.#values.set(dataId, value);
    return { dataId, shape: [...value.shape], dtype: value.type };
  }

  tensorOf(value: Value): tf.Tensor {
    return tf.engine().makeTensorFromTensorInfo(this.infoOf(value), this);
  }

  override write(values: tf.BackendValues, shape: number[], dtype: tf.DataType): tf.DataId {
    if (dtype !== "float32" && dtype !== "int32")
      throw new Error(`a traced function creates a tensor of ${dtype}`);
    const numbers = values as ArrayLike<number>;
    const constant = this.tracer.constant({
      type: dtype,
      shape,
      values: dtype === "float32" ? Float32Array.from(numbers) : Int32Array.from(numbers),
    });
    return this.infoOf(constant).dataId;
  }

  override disposeData(): boolean {
    return true;
  }

  override numDataIds(): number {
    return this.#values.size;
  }

  override refCount(): number {
    return 1;
  }

  override incRef(): void {}

  override timerAvailable(): boolean {
    return false;
  }

  override floatPrecision(): 32 {
    return 32;
  }

  override memory(): { unreliable: boolean } {
    return { unreliable: true };
  }

  override dispose(): void {}
}
