import { join } from "@periodic-eval/store/platform";
import { parseOptions } from "@periodic-eval/contracts/options";
import type { TrainingPassMemory, TrainingPassSize } from "@periodic-eval/tfjs";
import * as z from "zod";
import { trainingMemory } from "../decoder/training-memory.ts";
import { mapWeights, weightSpecs, withAdapters } from "../decoder/weights.ts";
import { ConfigReader } from "../families/config/config-reader.ts";
import { familyOf } from "../families/registry.ts";
import { modelError } from "../folder/model-error.ts";
import { onDownloadSchema, type DownloadProgress, modelFolder } from "../hub/fetch-model.ts";
import { openAdapter } from "../lora/load-lora.ts";
import type { ModelShape } from "../lora/adapter-plan.ts";
import { planLora, type LoraOptions } from "../lora/with-lora.ts";
import { readConfig } from "../checkpoint/load-causal-lm.ts";
import { modelName } from "../checkpoint/model.ts";

/** The facts about a model that its `config.json` determines, without its weights. */
export interface CausalLMOutline {
  /** The name on the hub, or of the folder. */
  readonly name: string;
  readonly vocabSize: number;
  /** The longest sequence, in tokens. */
  readonly contextLength: number;
  readonly layerCount: number;
  readonly takesDocuments: true;
  /** Does nothing; the loaded model has this ability. */
  enterActivationCheckpointing(): () => void;
  /** Throws `model`: the loaded model has this ability. */
  hiddenStates(): never;
  /** Estimates the memory of a training pass like the loaded model, with the adapter that `lora` describes if it is given. */
  trainingMemory(pass: TrainingPassSize, lora?: LoraOptions): TrainingPassMemory;
  /** Throws the errors that `withLora` would throw for the loaded model. */
  checkLora(options: LoraOptions): void;
  /**
   * Throws the errors that `loadLora` would throw for the loaded model, except those about the values and shapes of the
   * adapter's tensors.
   *
   * @param source A folder, or the name of an adapter on the hub, which is downloaded.
   */
  checkAdapter(source: string): Promise<void>;
}

export interface OutlineOptions {
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

const optionsSchema = z.strictObject({
  onDownload: onDownloadSchema.optional(),
} satisfies Record<keyof OutlineOptions, z.ZodType>);

/**
 * Reads only a model's configuration, so that unsuitable options are rejected before the weights load. For a model on the
 * hub only the configuration is downloaded. Needs no backend.
 *
 * @throws PeriodicEvalError `model` if the configuration is missing or not supported, as `loadCausalLM`; `config` for a
 *   wrong option.
 */
export async function outlineCausalLM(
  source: string,
  options: OutlineOptions = {},
): Promise<CausalLMOutline> {
  parseOptions("outlineCausalLM options", optionsSchema, options);
  const folder = await modelFolder(source, { need: "config", ...options });
  const config = await readConfig(folder, "config.json");
  const path = join(folder, "config.json");
  const family = familyOf(config, path);
  const description = family.describe(new ConfigReader(config, path, { notes: [] }));
  const weights = mapWeights(weightSpecs(description, family.names), ({ name, shape, transposed }) => ({
    name,
    variable: { shape: transposed ? shape.toReversed() : shape },
  }));
  const shape: ModelShape = { description, weights, config, folder };
  return {
    name: modelName(folder),
    vocabSize: description.vocabSize,
    contextLength: description.contextLength,
    layerCount: description.layers.length,
    takesDocuments: true,
    enterActivationCheckpointing: () => () => {},
    hiddenStates() {
      throw modelError({
        where: modelName(folder),
        got: "a request to the model, but the weights are not loaded",
        expected: "only prompts and data to be read",
        fix: "Load the model: `npx periodic-eval eval` does.",
      });
    },
    trainingMemory(pass, lora) {
      const sized = mapWeights(weights, (weight) => ({
        shape: weight.variable.shape,
        isTrained: lora === undefined,
      }));
      if (lora === undefined)
        return trainingMemory(description, sized, pass, { dropout: 0, adapterDropout: 0 });
      const { adapters, dropout } = planLora(lora, shape).plan;
      const trained = (shape: readonly number[]) => ({ shape, isTrained: true });
      const byLinear = adapters.flatMap(({ module, rank, scale }) => {
        const { linear, name, inputs, outputs } = module;
        const adapter = { name, a: trained([inputs, rank]), b: trained([rank, outputs]), scale };
        return linear === null ? [] : [[linear, adapter] as const];
      });
      const adapted = withAdapters(sized, new Map(byLinear), null);
      return trainingMemory(description, adapted, pass, { dropout: 0, adapterDropout: dropout });
    },
    checkLora: (lora) => void planLora(lora, shape),
    async checkAdapter(adapter) {
      // The weights may contain a separate head even if the configuration ties it.
      const { file } = await openAdapter(adapter, { ...shape, isHeadTied: false }, options);
      await file.close();
    },
  };
}
