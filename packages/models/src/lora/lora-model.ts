import { join } from "@periodic-eval/store/platform";
import { PeriodicEvalError } from "@periodic-eval/core";
import { storeError, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { writeSafetensors } from "@periodic-eval/safetensors";
import { partsOf, type CheckpointLM, type ModelParts } from "../checkpoint/model.ts";
import { savedDtype, tensorOf, type SaveOptions } from "../checkpoint/save.ts";
import { createDecoder, type LiveWeight } from "../decoder/causal-lm.ts";
import { createWeight } from "../decoder/variables.ts";
import { withAdapters, type Adapter, type Decoder } from "../decoder/weights.ts";
import { adapterNames } from "../hub/fetch-model.ts";
import type { AdapterPlan, AdapterTensor } from "./adapter-plan.ts";
import type { AdapterConfig } from "./lora-config.ts";
import { saveMerged } from "./save-merged.ts";

/** A model with a LoRA adapter (Hu et al. 2021). Training changes only the adapter; the model's variables are shared. */
export interface LoraLM extends CheckpointLM {
  /**
   * The adapter's name in snapshots: its folder or hub name with the base model that its configuration names; for an
   * adapter of `withLora`, its rank and alpha.
   */
  readonly adapter: string;
  /** The model without the adapter, usable at any time, even while the adapter is trained. */
  readonly base: CheckpointLM;
  /** The loaded or new `adapter_config.json`. */
  readonly adapterConfig: AdapterConfig;
  /** Returns the model's weights, then the adapter's. */
  weights(): readonly LiveWeight[];
  /** Writes `adapter_config.json` and `adapter_model.safetensors`, each atomically; PEFT loads the result. */
  save(folder: string, options?: SaveOptions): Promise<void>;
  /**
   * Writes a whole model with the adapter merged into its weights, W + scale·B·A. A tied head with an adapter becomes a
   * separate head.
   *
   * @throws PeriodicEvalError `model` if B has a bias and its linear map has none.
   */
  saveMerged(folder: string, options?: SaveOptions): Promise<void>;
  /** Disposes the adapter, not the model. */
  dispose(): void;
}

/** Returns the row-major values of a planned tensor. */
export type AdapterValues = (tensor: AdapterTensor) => Float32Array;

export interface AdapterSource {
  readonly plan: AdapterPlan;
  readonly config: AdapterConfig;
  readonly name: string;
  readonly values: AdapterValues;
}

/** Returns the parts of a model. Throws a `config` error for a model that cannot have an adapter. */
export function adaptable(model: CheckpointLM, where: string): ModelParts {
  const parts = partsOf(model);
  if (parts !== undefined) return parts;
  const isAdapted = typeof model === "object" && model !== null && "saveMerged" in model;
  throw new PeriodicEvalError({
    code: "config",
    where: `${where}, model`,
    got: isAdapted ? "a model that already has an adapter" : "another object",
    expected: "a model of loadCausalLM or createCausalLM",
    fix: isAdapted ? "Pass its base, or load the output of saveMerged." : "Load the model first.",
  });
}

export function createLora(
  model: CheckpointLM,
  parts: ModelParts,
  { plan, config, name, values }: AdapterSource,
): LoraLM {
  const created: LiveWeight[] = [];
  const live = (tensor: AdapterTensor, transposed = tensor.shape.length === 2) => {
    const weight = createWeight({ ...tensor, transposed, initial: 0 }, values(tensor));
    created.push(weight);
    return weight;
  };
  try {
    const linears = new Map<string, Adapter<LiveWeight>>();
    let headAdapter: Adapter<LiveWeight> | null = null;
    for (const { module, scale, a, b, bias } of plan.adapters) {
      const adapter = { name: module.name, a: live(a), b: live(b), bias: bias && live(bias), scale };
      if (module.linear === null) headAdapter = adapter;
      else linears.set(module.linear, adapter);
    }
    const saved: Partial<Decoder<LiveWeight>> = {
      ...(plan.embedding && { embedding: live(plan.embedding, false) }),
      ...(plan.head && { head: { ...parts.weights.head!, weight: live(plan.head) } }),
    };
    const weights = withAdapters({ ...parts.weights, ...saved }, linears, headAdapter);
    const all = [...model.weights(), ...created];
    return {
      ...createDecoder({ ...parts, weights, adapter: { weights: created, dropout: plan.dropout } }),
      ...(model.name !== undefined && { name: model.name }),
      config: model.config,
      folder: model.folder,
      adapter: name,
      adapterConfig: config,
      base: model,
      weights: () => all,
      save: (folder, options) => saveAdapter(folder, config, created, options),
      saveMerged: (folder, options) =>
        saveMerged(folder, { ...parts, base: parts.weights, adapted: weights }, options),
    };
  } catch (error) {
    for (const { variable } of created) variable.dispose();
    throw error;
  }
}

async function saveAdapter(
  folder: string,
  config: AdapterConfig,
  weights: readonly LiveWeight[],
  options: SaveOptions = {},
): Promise<void> {
  const dtype = savedDtype("lora.save options", options);
  try {
    await nodeFiles.makeFolder(folder);
    await writeSafetensors(join(folder, adapterNames.weights), weights.map(tensorOf), { dtype });
    // The configuration comes last: a folder that has it has its weights.
    await writeFileAtomic(join(folder, adapterNames.config), `${JSON.stringify(config, null, 2)}\n`);
  } catch (error) {
    throw storeError(folder, error, "a folder to write the adapter to");
  }
}
