import * as tf from "@tensorflow/tfjs-core";
import { hasNativeKernels, runNative } from "./native.ts";
import { differentiable } from "./differentiable.ts";

/** x → x² · p + q. */
const squareTimes = (x: tf.Tensor, p: number, q: number): tf.Tensor => tf.add(tf.mul(tf.square(x), p), q);

export type Activation =
  | "silu"
  /** x · Φ(x). */
  | "gelu"
  /** The tanh approximation of GELU. */
  | "geluTanh"
  | "relu"
  /** max(x, 0)² (So et al. 2021). */
  | "reluSquared"
  /** x · σ(1.702 · x), an approximation of GELU. */
  | "quickGelu";

/** x [N, F] → activation(x) [N, F]. */
export function activate(kind: Activation, x: tf.Tensor2D): tf.Tensor2D {
  const { run, slope } = activations[kind];
  return differentiable([x], (save) => {
    if (kind === "geluTanh" && hasNativeKernels()) {
      save([x]);
      return {
        value: runNative("PeriodicGeluTanh", [x], {}) as tf.Tensor2D,
        backward: (gradient, saved) => [runNative("PeriodicGeluTanhGradient", [gradient, ...saved], {})],
      };
    }
    const { value, saved } = run(x);
    save([value, ...saved]);
    return {
      value,
      backward: (gradient, [value, ...saved]) => [tf.mul(gradient, slope(value as tf.Tensor2D, saved))],
    };
  });
}

/** gate, up [N, F] → activation(gate) · up [N, F] (gated linear units, Shazeer 2020). */
export function activateGated(kind: Activation, gate: tf.Tensor2D, up: tf.Tensor2D): tf.Tensor2D {
  const { run, slope } = activations[kind];
  return differentiable([gate, up], (save) => {
    if (kind === "silu" && hasNativeKernels()) {
      save([gate, up]);
      return {
        value: runNative("PeriodicGatedSilu", [gate, up], {}) as tf.Tensor2D,
        backward: (gradient, saved) => runNative("PeriodicGatedSiluGradient", [gradient, ...saved], {}),
      };
    }
    const { value: activated, saved } = run(gate);
    save([activated, up, ...saved]);
    return {
      value: tf.mul<tf.Tensor2D>(activated, up),
      backward: (gradient, [activated, up, ...saved]) => [
        tf.mul(tf.mul(gradient, up!), slope(activated as tf.Tensor2D, saved)),
        tf.mul(gradient, activated!),
      ],
    };
  });
}

interface Definition {
  run(x: tf.Tensor2D): { value: tf.Tensor2D; saved: tf.Tensor[] };
  /** Returns the derivative from the results of `run`. */
  slope(value: tf.Tensor2D, saved: tf.Tensor[]): tf.Tensor2D;
}

const activations: Readonly<Record<Activation, Definition>> = {
  // x·σ(x); slope σ + x·σ·(1 − σ) = σ + value − value·σ.
  silu: {
    run(x) {
      const sigmoid = tf.sigmoid(x);
      return { value: tf.mul(x, sigmoid), saved: [sigmoid] };
    },
    slope: (value, [sigmoid]) => tf.sub(tf.add(sigmoid!, value), tf.mul(value, sigmoid!)),
  },
  // x·Φ(x); slope Φ + x·φ(x), φ(x) = exp(−x²/2)/√(2π). exp(−y) = σ(−y)/σ(y), because wasm has a fast kernel for σ only.
  gelu: {
    run(x) {
      const below = tf.mul(tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1), 0.5);
      return { value: tf.mul(x, below), saved: [below, x] };
    },
    slope(_, [below, x]) {
      const y = tf.mul(tf.square(x!), 0.5);
      const density = tf.div(tf.sigmoid(tf.neg(y)), tf.mul(tf.sigmoid(y), Math.sqrt(2 * Math.PI)));
      return tf.add(below!, tf.mul(x!, density));
    },
  },
  // x/2·(1 + tanh u) = x·σ(2u), u = √(2/π)·(x + 0.044715·x³) (Hendrycks and Gimpel 2016); slope σ + value·(1 − σ)·2u′.
  geluTanh: {
    run(x) {
      const sigmoid = tf.sigmoid(tf.mul(x, squareTimes(x, 2 * bend * cubic, 2 * bend)));
      return { value: tf.mul(x, sigmoid), saved: [sigmoid, x] };
    },
    slope(value, [sigmoid, x]) {
      const factor = squareTimes(x!, 6 * bend * cubic, 2 * bend);
      return tf.add(sigmoid!, tf.mul(tf.mul(value, tf.sub(1, sigmoid!)), factor));
    },
  },
  relu: {
    run: (x) => ({ value: tf.relu(x), saved: [] }),
    slope: (value) => tf.step(value),
  },
  // Slope 2·max(x, 0).
  reluSquared: {
    run(x) {
      const positive = tf.relu(x);
      return { value: tf.square(positive), saved: [positive] };
    },
    slope: (_, [positive]) => tf.mul(positive as tf.Tensor2D, 2),
  },
  // x·σ(s·x); slope σ + s·value·(1 − σ).
  quickGelu: {
    run(x) {
      const sigmoid = tf.sigmoid(tf.mul(x, steepness));
      return { value: tf.mul(x, sigmoid), saved: [sigmoid] };
    },
    slope: (value, [sigmoid]) => tf.add(sigmoid!, tf.mul(tf.mul(value, steepness), tf.sub(1, sigmoid!))),
  },
};

const steepness = 1.702;

const bend = Math.sqrt(2 / Math.PI);
const cubic = 0.044715;
