import { basename, resolve } from "@periodic-eval/store/platform";
import * as z from "zod";
import { createDecoder, type DecoderParts, type LiveDecoder } from "../decoder/causal-lm.ts";
import { listWeights } from "../decoder/weights.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { hubNameOf } from "@periodic-eval/data";
import { saveCheckpoint, tensorOf, type SaveOptions } from "./save.ts";

/** A causal language model that was loaded from a Hugging Face checkpoint or can be saved as one. */
export interface CheckpointLM extends LiveDecoder {
  /** The name on the hub, or of the folder; absent for a created model. */
  readonly name?: string;
  /** The `config.json` that was loaded or passed. */
  readonly config: HuggingFaceConfig;
  /** The folder that it was loaded from; null for a created model. */
  readonly folder: string | null;
  /**
   * Writes `config.json`, `model.safetensors` and, for a loaded model, the tokenizer and generation files of its folder;
   * `transformers` loads the result. Copies the other parts of a multimodal model from that folder. Each file is written atomically. The default dtype `"F32"` is lossless; the
   * configuration's `dtype` or `torch_dtype` is set to the written one.
   *
   * @throws PeriodicEvalError `store` if the folder cannot be written, `config` for a wrong option.
   */
  save(folder: string, options?: SaveOptions): Promise<void>;
}

/** Everything that a model is made of. */
export interface ModelParts extends DecoderParts {
  readonly config: HuggingFaceConfig;
  readonly folder: string | null;
  /** The tensors in its folder of the other parts of a multimodal model. */
  readonly otherParts: readonly string[];
}

export function createModel(parts: ModelParts): CheckpointLM {
  const { config, folder, weights, otherParts } = parts;
  const model: CheckpointLM = {
    ...createDecoder(parts),
    ...(folder !== null && { name: modelName(folder) }),
    config,
    folder,
    save: (target, options) => {
      const tensors = listWeights(weights).map(tensorOf);
      return saveCheckpoint(target, { config, tensors, from: folder, otherParts }, options);
    },
  };
  partsByModel.set(model, parts);
  return model;
}

/** Returns the name of a model or adapter: on the hub, or of its folder. */
export const modelName = (folder: string): string => hubNameOf(folder) ?? basename(resolve(folder));

const partsByModel = new WeakMap<CheckpointLM, ModelParts>();

/** Returns the parts of a model; undefined if `createModel` did not create it. */
export const partsOf = (model: CheckpointLM): ModelParts | undefined => partsByModel.get(model);

/** The option `dropout`. */
export const dropoutRate = z
  .number("a probability in [0, 1)")
  .min(0, "a probability in [0, 1)")
  .lt(1, "a probability in [0, 1)")
  .meta({ fix: "Omit it for no dropout." });
