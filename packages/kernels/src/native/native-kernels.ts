import { adamWKernel, drawKernel, isOnDevice } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";

/**
 * The parameters of each kernel of `kernels.cc`. Inputs and results are float32 unless noted; `gradient` is that of the output. N rows, H heads, D dimensions per head, F features;
 * B sequences of T new tokens.
 */
export interface NativeParameters {
  /** x [M, K], w [K, N], float32 or the result of `PeriodicHalve` → x·w [M, N], with the same bits. */
  readonly PeriodicMatMul: Record<never, never>;
  /**
   * w [K, N], or [N, K] if `transposed` is 1 → int32 [K, N / 2], two weights in each number. If N is odd or a weight is not exactly
   * bfloat16 → [0].
   */
  readonly PeriodicHalve: { readonly transposed: 0 | 1 };
  /** The result of `PeriodicHalve` with `transposed` 0, int32 [K, N / 2] → the weight [K, N]. */
  readonly PeriodicWiden: Record<never, never>;
  /** x [N, H·D], weight [D] → x / √(mean(x²) + epsilon) · (weight + offset) [N, H·D], with a mean for each D numbers. */
  readonly PeriodicRmsNorm: { readonly epsilon: number; readonly offset: number };
  /** gradient, x [N, H·D], weight [D] → the gradients of x and weight. */
  readonly PeriodicRmsNormGradient: NativeParameters["PeriodicRmsNorm"];
  /** x [N, D], weight, bias [D] → (x − mean) / √(variance + epsilon) · weight + bias [N, D]. */
  readonly PeriodicLayerNorm: { readonly epsilon: number };
  /** gradient, x [N, D], weight [D] → the gradients of x, weight and bias. */
  readonly PeriodicLayerNormGradient: NativeParameters["PeriodicLayerNorm"];
  /** gate, up [N, F] → gate · σ(gate) · up [N, F]. */
  readonly PeriodicGatedSilu: Record<never, never>;
  /** gradient, gate, up [N, F] → the gradients of gate and up. */
  readonly PeriodicGatedSiluGradient: Record<never, never>;
  /** x [N, F] → the tanh approximation of GELU [N, F]. */
  readonly PeriodicGeluTanh: Record<never, never>;
  /** gradient, x [N, F] → the gradient of x. */
  readonly PeriodicGeluTanhGradient: Record<never, never>;
  /** scores [A, T, P], mask [T, P] or [A, T, P] → softmax(scores + mask) over the last axis. */
  readonly PeriodicMaskedSoftmax: Record<never, never>;
  /** gradient, weights [A, T, P] → the gradient of the scores. */
  readonly PeriodicSoftmaxGradient: Record<never, never>;
  /** x [N, H·D], cosines [N, D], sines [N, D] → x rotated and scaled [N, H·D]; dimension i < pairs turns with i + pairs. */
  readonly PeriodicRotate: { readonly pairs: number; readonly scale: number };
  /** query [B·T, H·D], keys of all pieces, values of all, masks of all (see `AttendedPiece`; [0] for no mask) → [B·T, H·D]. */
  readonly PeriodicAttend: {
    readonly heads: number;
    readonly keyValueHeads: number;
    readonly pieces: number;
  };
  /** gradient, weight, mean and meanSq of one shape, numbers [7] → new weight, mean and meanSq; see `adamWKernel`. */
  readonly PeriodicAdamW: Record<never, never>;
  /** logits [N, V], targets int32 [N] → −log softmax of each target [N], and the gradient of their sum [N, V]. */
  readonly PeriodicTargetLosses: Record<never, never>;
}

export type NativeKernel = keyof NativeParameters;

/** The parameters that are floats. The others are integers. */
const isFloat: ReadonlySet<string> = new Set(["epsilon", "offset", "scale"]);

/** The number of results of each kernel. */
const resultCounts = {
  PeriodicMatMul: 1,
  PeriodicHalve: 1,
  PeriodicWiden: 1,
  PeriodicRmsNorm: 1,
  PeriodicRmsNormGradient: 2,
  PeriodicLayerNorm: 1,
  PeriodicLayerNormGradient: 3,
  PeriodicGatedSilu: 1,
  PeriodicGatedSiluGradient: 2,
  PeriodicGeluTanh: 1,
  PeriodicGeluTanhGradient: 1,
  PeriodicMaskedSoftmax: 1,
  PeriodicSoftmaxGradient: 1,
  PeriodicRotate: 1,
  PeriodicAttend: 1,
  PeriodicAdamW: 3,
  PeriodicTargetLosses: 2,
} as const satisfies Readonly<Record<NativeKernel, number>>;

/** A parameter of an operation, as TensorFlow's protocol buffers name its kinds. */
type NumberAttribute = { readonly f: number } | { readonly i: number };

/** Returns a kernel's parameters as attributes of a TensorFlow operation. */
export function attributesOf(parameters: object): Record<string, NumberAttribute> {
  return Object.fromEntries(
    Object.entries(parameters as Record<string, number>).map(([name, value]) => {
      return [name, isFloat.has(name) ? { f: value } : { i: value }];
    }),
  );
}

/** The methods of tfjs-node's backend that run one operation. */
interface NativeBackend {
  readonly binding: { readonly TF_ATTR_FLOAT: number; readonly TF_ATTR_INT: number };
  executeMultipleOutputs(
    name: string,
    attributes: readonly { readonly name: string; readonly type: number; readonly value: number }[],
    inputs: readonly tf.TensorInfo[],
    count: number,
  ): tf.TensorInfo[];
}

let isRegistered = false;

/**
 * Registers the kernels in TensorFlow.js, once per process. Loading the compiled file has registered them in TensorFlow.
 *
 * @param lanes The numbers in a vector of the compiled file, by which sums are split: a model's identity names it.
 */
export function registerNativeKernels(lanes: number): void {
  if (isRegistered) return;
  isRegistered = true;
  for (const [name, count] of Object.entries(resultCounts))
    tf.registerKernel(
      Object.assign(
        { kernelName: name, backendName: "tensorflow", kernelFunc: kernelOf(name, count) },
        { lanes },
      ),
    );
  // On a GPU these two kernels do not run: tokens are drawn on the host, and AdamW uses separate operations.
  if (isOnDevice()) return;
  const draw = kernelOf("PeriodicDraw", 1);
  tf.registerKernel({ kernelName: drawKernel, backendName: "tensorflow", kernelFunc: draw });
  tf.registerKernel({
    kernelName: adamWKernel,
    backendName: "tensorflow",
    kernelFunc({ inputs, attrs, backend }) {
      const { gradient, weight, mean, meanSq } = inputs as Record<string, tf.TensorInfo>;
      // A tensor, because TensorFlow keeps a kernel for each combination of attributes.
      const numbers = tf.tensor1d(attrs!["numbers"] as unknown as number[]);
      try {
        const tensors = [gradient!, weight!, mean!, meanSq!, numbers];
        return (backend as NativeBackend).executeMultipleOutputs("PeriodicAdamW", [], tensors, 3);
      } finally {
        numbers.dispose();
      }
    },
  });
}

/** Returns a kernel of TensorFlow.js that runs an operation with `count` results. */
const kernelOf =
  (operation: string, count: number): tf.KernelFunc =>
  ({ inputs, attrs, backend }) => {
    const native = backend as NativeBackend;
    const { binding } = native;
    const attributes = Object.entries(attributesOf(attrs ?? {})).map(([name, attribute]) =>
      "f" in attribute
        ? { name, type: binding.TF_ATTR_FLOAT, value: attribute.f }
        : { name, type: binding.TF_ATTR_INT, value: attribute.i },
    );
    const tensors = Object.values(inputs) as tf.TensorInfo[];
    const results = native.executeMultipleOutputs(operation, attributes, tensors, count);
    return count === 1 ? results[0]! : results;
  };

/** What a kernel returns in TensorFlow.js: a list if it has several results. */
export type NativeResults<Name extends NativeKernel> = (typeof resultCounts)[Name] extends 1
  ? tf.Tensor
  : tf.Tensor[];

/** The name of the backend while a function is traced. */
export const tracingName = "periodic-eval-trace";
