import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { storeError, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { writeSafetensors } from "@periodic-eval/safetensors";
import { checkSaveOptions, tensorOf, type SaveOptions } from "../checkpoint/save.ts";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { adapterNames } from "../hub/fetch-model.ts";
import type { AdapterConfig } from "./lora-config.ts";

export async function saveAdapter(
  folder: string,
  config: AdapterConfig,
  weights: readonly LiveWeight[],
  options: SaveOptions = {},
): Promise<void> {
  const dtype = checkSaveOptions("lora.save", options);
  try {
    await mkdir(folder, { recursive: true });
    await writeSafetensors(join(folder, adapterNames.weights), weights.map(tensorOf), { dtype });
    // Last, so that a folder with a configuration has its weights.
    await writeFileAtomic(join(folder, adapterNames.config), `${JSON.stringify(config, null, 2)}\n`);
  } catch (error) {
    throw storeError(folder, error, "a folder to write the adapter to");
  }
}
