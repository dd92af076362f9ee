import type { Activation } from "../../ops/activation.ts";
import type { ConfigReader } from "./config-reader.ts";

export type ActivationName = keyof typeof activations;

/** The supported names of `ACT2FN` in transformers 5.23 `activations.py`. */
const activations = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  gelu_python_tanh: "geluTanh",
  gelu_fast: "geluTanh",
  gelu_accurate: "geluTanh",
  quick_gelu: "quickGelu",
  relu: "relu",
  relu2: "reluSquared",
} as const satisfies Readonly<Record<string, Activation>>;

export function activation(config: ConfigReader, key: string, fallback: ActivationName): Activation {
  return activations[config.oneOf(key, Object.keys(activations) as ActivationName[], fallback)];
}
