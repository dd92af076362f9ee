import { join } from "node:path";
import { mapWeights, weightSpecs } from "../decoder/weights.ts";
import { ConfigReader } from "../families/config/config-reader.ts";
import { familyOf } from "../families/registry.ts";
import type { DownloadProgress } from "../hub/fetch-model.ts";
import { modelFolder } from "../hub/model-folder.ts";
import { openAdapter } from "../lora/load-lora.ts";
import type { ModelShape } from "../lora/modules.ts";
import { planLora, type LoraOptions } from "../lora/with-lora.ts";
import { readConfig } from "../checkpoint/load-causal-lm.ts";
import { nameOf } from "../checkpoint/model.ts";

/** What `config.json` tells of a model, of which no weight was read. */
export interface CausalLMOutline {
  /** The name of its folder, or on the hub. */
  readonly name: string;
  readonly vocabSize: number;
  /** In tokens. */
  readonly contextLength: number;
  readonly takesDocuments: true;
  /** The loaded model has it; here it does nothing. */
  enterActivationCheckpointing(): () => void;
  /** Throws as `withLora` on the loaded model. */
  checkLora(options: LoraOptions): void;
  /**
   * Throws as `loadLora` on the loaded model, less what it says of values and shapes of the adapter's tensors.
   *
   * @param source a folder, or the name of an adapter on the hub, which is fetched
   */
  checkAdapter(source: string): Promise<void>;
}

/** More layers than any model has; in a text file a number could ask for all memory. */
const limits = { size: Infinity, layers: 2 ** 16 };

/**
 * A model as far as its configuration tells it, so that what is asked of it can be refused before its weights are loaded. Of
 * one on the hub the configuration alone is fetched. No backend is needed.
 *
 * Throws a `model` error as `loadCausalLM`, for a configuration that is not there or not supported.
 */
export async function outlineCausalLM(
  source: string,
  options: { readonly onDownload?: (progress: DownloadProgress) => void } = {},
): Promise<CausalLMOutline> {
  const folder = await modelFolder(source, { need: "config", ...options });
  const config = await readConfig(folder, "config.json");
  const path = join(folder, "config.json");
  const family = familyOf(config, path);
  const description = family.describe(new ConfigReader(config, path, limits));
  const weights = mapWeights(weightSpecs(description, family.names), ({ name, shape, transposed }) => ({
    name,
    variable: { shape: transposed ? shape.toReversed() : shape },
  }));
  const shape: ModelShape = { description, weights, config, folder };
  return {
    name: nameOf(folder),
    vocabSize: description.vocabSize,
    contextLength: description.contextLength,
    takesDocuments: true,
    enterActivationCheckpointing: () => () => {},
    checkLora: (lora) => void planLora(lora, shape),
    async checkAdapter(adapter) {
      // A head that is said to be tied may lie in the weights with values of its own.
      const { file } = await openAdapter(adapter, { ...shape, isHeadTied: false }, options);
      await file.close();
    },
  };
}
