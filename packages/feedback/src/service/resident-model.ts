import type { EvaluableModel } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { localEngine, type LocalEngineOptions } from "../engine/local-engine.ts";
import type { FeedbackExample, FeedbackModel, TrainedState, UpdateRecord } from "../engine/types.ts";
import type { AdapterSettings, AdapterStore } from "./adapters.ts";
import { refused } from "./refusals.ts";

/** An adapter in memory. */
export interface OpenAdapter {
  readonly evaluable: EvaluableModel;
  /** Returns the updates so far. */
  trained(): TrainedState;
  /** Does the same as `FeedbackModel.update`. After a failure, the adapter is reopened at its newest checkpoint. */
  update(batch: readonly FeedbackExample[], record: UpdateRecord): Promise<void>;
}

/** The single model in a service's memory: the base, or the base with an adapter. Calls must not overlap. */
export interface ResidentModel {
  /** Returns the base model or an adapter by its name. Throws HTTPException 404 for an unknown name. */
  evaluable(name: string): Promise<EvaluableModel>;
  /**
   * Opens an adapter, or creates one with `initialSettings`.
   *
   * @throws HTTPException 404 for an unknown adapter without `initialSettings`.
   */
  adapter(loraId: string, initialSettings?: AdapterSettings): Promise<OpenAdapter>;
  dispose(): Promise<void>;
}

interface LoadedModel {
  /** Null: the base model without an adapter. */
  readonly loraId: string | null;
  readonly base: EvaluableModel | null;
  readonly adapter: OpenAdapter | null;
  dispose(): void | Promise<void>;
}

export interface ResidentOptions {
  readonly parts: LocalEngineOptions;
  /** Name of the base model in requests. */
  readonly baseName: string;
  readonly adapters: AdapterStore;
  /** Aborted when the service shuts down. */
  readonly signal: AbortSignal;
}

export function residentModel({ parts, baseName, adapters, signal }: ResidentOptions): ResidentModel {
  const engine = localEngine(parts);
  let loaded: LoadedModel | null = null;

  async function dispose(): Promise<void> {
    const before = loaded;
    loaded = null;
    await before?.dispose();
  }

  async function adapter(loraId: string, initialSettings?: AdapterSettings): Promise<OpenAdapter> {
    if (loaded?.loraId === loraId) return loaded.adapter!;
    const settings = (await adapters.read(loraId)) ?? initialSettings;
    if (settings === undefined) throw unknownModel(loraId);
    await dispose();
    const model = await engine.open({ ...requestOf(settings), folder: adapters.folderOf(loraId), signal });
    loaded = {
      loraId,
      base: model.evaluable.base ?? null,
      adapter: openAdapter(model, signal, dispose),
      dispose: () => model.dispose(),
    };
    return loaded.adapter!;
  }

  async function base(): Promise<EvaluableModel> {
    if (loaded?.base != null) return loaded.base;
    await dispose();
    const { model, tokenizer, dispose: close } = await parts.openModel({ seed: 0 });
    const evaluable = inMemory(model.base ?? model, tokenizer);
    loaded = { loraId: null, base: evaluable, adapter: null, dispose: close };
    return evaluable;
  }

  return {
    evaluable: async (name) => (name === baseName ? base() : (await adapter(name)).evaluable),
    adapter,
    dispose,
  };
}

const requestOf = ({ lora_id: loraId, training, steps_per_batch: stepsPerBatch, seed }: AdapterSettings) => ({
  loraId,
  training,
  stepsPerBatch,
  seed,
});

function openAdapter(model: FeedbackModel, signal: AbortSignal, unload: () => Promise<void>): OpenAdapter {
  let { trained } = model;
  return {
    evaluable: model.evaluable,
    trained: () => trained,
    async update(batch, record) {
      try {
        const report = await model.update(batch, record, signal);
        trained = { updates: trained.updates + 1, last: { ...record, report } };
      } catch (error) {
        // A model whose weights are in no checkpoint must not answer requests.
        await unload();
        throw error;
      }
    },
  };
}

const unknownModel = (name: string) =>
  refused(404, "model_not_found", {
    where: "model",
    got: JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name),
    expected: "the base model or an adapter of this service",
    fix: "GET /v1/health lists the adapters; POST /v1/lora/init creates an adapter.",
  });
