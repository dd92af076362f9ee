import { describeBytes } from "@periodic-eval/contracts/options";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { engineMemory, type MemoryAdvice } from "./engine-memory.ts";

/** The calls of a measurement that read the model. */
export type MeasuringCall =
  | "scores continuations"
  | "scores next tokens"
  | "generates"
  | "checks the backend";

const shorter = "ask shorter questions, with fewer few-shot examples";

/** Batches shrink by themselves, to a single row: only a smaller row, less around it or another backend helps. */
const remediesOf: Readonly<Record<MeasuringCall, readonly string[]>> = {
  "scores continuations": [shorter],
  "scores next tokens": [shorter],
  generates: ["generate fewer tokens (sampling.maxNewTokens of the callback)", shorter],
  "checks the backend": ["use a smaller model"],
};

/**
 * Returns the advice for a call that ran out of memory with the smallest batch.
 *
 * @param given Advice of the owner of the model, who knows what else is in memory.
 */
export function measuringAdvice(lm: CausalLM, doing: MeasuringCall, given?: MemoryAdvice): MemoryAdvice {
  return {
    estimate: given?.estimate ?? estimateBeside(lm),
    remedies: [...remediesOf[doing], ...(given?.remedies ?? nativeRemedy())],
  };
}

function estimateBeside({ weights }: CausalLM): string | null {
  if (weights === undefined) return null;
  const bytes = weights().reduce((sum, weight) => sum + 4 * weight.read().size, 0);
  return `enough memory for a measurement beside weights (${describeBytes(bytes)})`;
}

const nativeRemedy = (): readonly string[] =>
  ["wasm", "cpu"].includes(engineMemory().backend)
    ? ['use native TensorFlow, useBackend({ backend: "tfjs-node" }) (in YAML backend: tfjs-node)']
    : [];
