import { PeriodicEvalError } from "@periodic-eval/core";
import { partsOf, type CheckpointLM, type ModelParts } from "../checkpoint/model.ts";
import type { SaveOptions } from "../checkpoint/save.ts";
import { createDecoder, type LiveWeight } from "../decoder/causal-lm.ts";
import { createWeight } from "../decoder/variables.ts";
import { withAdapters, type Adapter, type Decoder } from "../decoder/weights.ts";
import type { AdapterPlan, AdapterTensor } from "./adapter-plan.ts";
import type { AdapterConfig } from "./lora-config.ts";
import { saveAdapter } from "./save-adapter.ts";
import { saveMerged } from "./save-merged.ts";

/**
 * A model with a LoRA adapter, of which the adapter alone is trained (Hu et al. 2021). It holds no copy of the model: both
 * live on the same variables.
 */
export interface LoraLM extends CheckpointLM {
  /**
   * What the adapter is called in snapshots: its folder or its name on the hub, and the model that it says it is of; of one
   * that `withLora` made, its rank and alpha.
   */
  readonly adapter: string;
  /** The model without the adapter, at any time, also while the adapter is trained. */
  readonly base: CheckpointLM;
  /** `adapter_config.json` as it was loaded, or as it is written. */
  readonly adapterConfig: AdapterConfig;
  /** The model's, then the adapter's. */
  weights(): readonly LiveWeight[];
  /** Writes `adapter_config.json` and `adapter_model.safetensors`, which PEFT loads; each file is written whole. */
  save(folder: string, options?: SaveOptions): Promise<void>;
  /**
   * Writes the model with the adapter worked into its weights, W + scale·B·A, as a model of its own. A tied head that has
   * an adapter becomes one of its own. Throws a `model` error where B has a bias and the map has none.
   */
  saveMerged(folder: string, options?: SaveOptions): Promise<void>;
  /** Disposes the adapter; the model stays, and is whose it was. */
  dispose(): void;
}

/** Row-major values of a tensor of the plan. */
export type AdapterValues = (tensor: AdapterTensor) => Float32Array;

export interface AdapterSource {
  readonly plan: AdapterPlan;
  readonly config: AdapterConfig;
  readonly name: string;
  readonly values: AdapterValues;
}

/** The parts of a model that can get an adapter; throws a `config` error for another. */
export function adaptable(model: CheckpointLM, where: string): ModelParts {
  const parts = partsOf(model);
  if (parts !== undefined) return parts;
  const isAdapted = typeof model === "object" && model !== null && "saveMerged" in model;
  throw new PeriodicEvalError({
    code: "config",
    where: `${where}, model`,
    got: isAdapted ? "a model that has an adapter" : "another object",
    expected: "a model of loadCausalLM or createCausalLM",
    fix: isAdapted ? "Pass its base, or load what saveMerged writes." : "Load the model first.",
  });
}

export function createLora(
  model: CheckpointLM,
  parts: ModelParts,
  { plan, config, name, values }: AdapterSource,
): LoraLM {
  const made: LiveWeight[] = [];
  const live = (tensor: AdapterTensor, transposed = tensor.shape.length === 2) => {
    const weight = createWeight({ ...tensor, transposed, initial: 0 }, values(tensor));
    made.push(weight);
    return weight;
  };
  try {
    const linears = new Map<string, Adapter<LiveWeight>>();
    let headAdapter: Adapter<LiveWeight> | null = null;
    for (const { module, scale, a, b, bias } of plan.adapters) {
      const adapter = {
        name: module.name,
        a: live(a),
        b: live(b),
        bias: bias && live(bias),
        scale,
      };
      if (module.linear === null) headAdapter = adapter;
      else linears.set(module.linear, adapter);
    }
    const saved: Partial<Decoder<LiveWeight>> = {
      ...(plan.embedding && { embedding: live(plan.embedding, false) }),
      ...(plan.head && { head: { ...parts.weights.head!, weight: live(plan.head) } }),
    };
    const weights = withAdapters({ ...parts.weights, ...saved }, linears, headAdapter);
    return loraOf(model, parts, { weights, own: made, dropout: plan.dropout, config, name });
  } catch (error) {
    for (const { variable } of made) variable.dispose();
    throw error;
  }
}

interface Adapted {
  readonly weights: Decoder<LiveWeight>;
  readonly own: readonly LiveWeight[];
  readonly dropout: number;
  readonly config: AdapterConfig;
  readonly name: string;
}

function loraOf(model: CheckpointLM, parts: ModelParts, adapted: Adapted): LoraLM {
  const { weights, own, dropout, config, name } = adapted;
  const all = [...model.weights(), ...own];
  return {
    ...createDecoder({ ...parts, weights, adapter: { weights: own, dropout } }),
    ...(model.name !== undefined && { name: model.name }),
    config: model.config,
    folder: model.folder,
    adapter: name,
    adapterConfig: config,
    base: model,
    weights: () => all,
    save: (folder, options) => saveAdapter(folder, config, own, options),
    saveMerged: (folder, options) =>
      saveMerged(folder, { ...parts, base: parts.weights, adapted: weights }, options),
  };
}
