import type { EvaluableModel } from "@periodic-eval/core";
import { fingerprintWeights, inMemory } from "@periodic-eval/core/tfjs";
import { loadCausalLM } from "./checkpoint/load-causal-lm.ts";
import { loadLora } from "./lora/load-lora.ts";
import { loadTokenizer } from "./tokenizer/load-tokenizer.ts";

/** The checkpoint and its parts. Each is a local folder, or `owner/name` on the hub. */
export interface CheckpointToOpen {
  readonly folder: string;
  /** An adapter in PEFT's format; null (default) for none. */
  readonly adapter?: string | null;
  /** Null (default) for the checkpoint's own tokenizer. */
  readonly tokenizer?: string | null;
}

export interface OpenCheckpoint {
  readonly model: EvaluableModel;
  /** Returns the hash of all weights, including the adapter's. */
  fingerprint(): Promise<string>;
  /** Returns the hash of the weights without the adapter's. */
  baseFingerprint(): Promise<string>;
  dispose(): void;
}

/**
 * Loads a checkpoint, its tokenizer and, if named, an adapter, as a model to measure. It is the `openModel` of an `Evaluator`:
 *
 *     Evaluator.fromCheckpoint("path/to/model", { name: "base", tasks, openModel: openCheckpoint });
 *
 * The caller disposes the result. Call `useBackend` first.
 *
 * @throws PeriodicEvalError `model` as `loadTokenizer`, `loadCausalLM` and `loadLora`.
 */
export async function openCheckpoint({
  folder,
  adapter = null,
  tokenizer: tokenizerSource = null,
}: CheckpointToOpen): Promise<OpenCheckpoint> {
  const tokenizer = await loadTokenizer(tokenizerSource ?? folder);
  const base = await loadCausalLM(folder);
  try {
    const model = adapter === null ? base : await loadLora(base, adapter);
    return {
      model: inMemory(model, tokenizer),
      fingerprint: () => fingerprintWeights(model.weights(), { method: "exact" }),
      baseFingerprint: () => fingerprintWeights(base.weights(), { method: "exact" }),
      dispose() {
        if (model !== base) model.dispose();
        base.dispose();
      },
    };
  } catch (error) {
    base.dispose();
    throw error;
  }
}
