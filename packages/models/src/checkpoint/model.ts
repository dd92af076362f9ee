import { basename, resolve } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { createDecoder, type DecoderParts, type LiveDecoder } from "../decoder/causal-lm.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { hubNameOf } from "../hub/cache.ts";
import { listWeights } from "../decoder/weights.ts";
import { saveCheckpoint, tensorOf, type SaveOptions } from "./save.ts";

/** A causal language model from, or in the form of, a Hugging Face checkpoint. */
export interface CheckpointLM extends LiveDecoder {
  /** The name of its folder, or on the hub. */
  readonly name?: string;
  /** `config.json` as it was loaded. */
  readonly config: HuggingFaceConfig;
  /** Where it was loaded from; null for one that was created. */
  readonly folder: string | null;
  /**
   * Writes `config.json`, `model.safetensors` and, where the model was loaded from a folder, that folder's tokenizer and
   * generation files; `transformers` loads the result. Each file is written whole. The default dtype, `"F32"`, loses
   * nothing; the configuration's `dtype` or `torch_dtype` is set to what is written.
   */
  save(folder: string, options?: SaveOptions): Promise<void>;
}

export interface ModelParts extends DecoderParts {
  readonly config: HuggingFaceConfig;
  readonly folder: string | null;
}

export function createModel(parts: ModelParts): CheckpointLM {
  const { config, folder, weights } = parts;
  const model: CheckpointLM = {
    ...createDecoder(parts),
    ...(folder !== null && { name: nameOf(folder) }),
    config,
    folder,
    save: (target, options) => {
      const tensors = listWeights(weights).map(tensorOf);
      return saveCheckpoint(target, { config, tensors, from: folder }, options);
    },
  };
  made.set(model, parts);
  return model;
}

/** On the hub, or of the folder itself. */
export const nameOf = (folder: string): string => hubNameOf(folder) ?? basename(resolve(folder));

const made = new WeakMap<CheckpointLM, ModelParts>();

/** What a model was made of; undefined for one that was not made here. */
export const partsOf = (model: CheckpointLM): ModelParts | undefined => made.get(model);

/** Throws a `config` error unless the rate is in [0, 1). */
export function checkDropout(dropout: number): void {
  if (dropout >= 0 && dropout < 1) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "dropout",
    got: String(dropout),
    expected: "a probability in [0, 1)",
    fix: "Leave it out for none.",
  });
}
