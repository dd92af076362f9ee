import type { Awaitable } from "./json.ts";
import type { EvaluableModel } from "./model.ts";

/** A model that was opened to be measured. Whoever opens it disposes it. */
export interface OpenedModel {
  readonly model: EvaluableModel;
  /**
   * Returns the hash of all weights, including the adapter's; null if unknown. Without it, an interrupted run cannot be resumed,
   * because the weights cannot be compared.
   */
  fingerprint?(): Awaitable<string | null>;
  /** Returns the hash of the weights without the adapter: `frozenWeights` in checkpoints of our trainers. */
  baseFingerprint?(): Awaitable<string | null>;
  dispose?(): Awaitable<void>;
}

export interface OpenCheckpointOptions {
  /** A tokenizer's folder or name on the hub. Default: the checkpoint's, otherwise the base model's. */
  readonly tokenizer?: string | null;
  readonly signal?: AbortSignal;
}

/**
 * Opens a checkpoint of a base model, in this process or on a server.
 *
 * @param base A folder, or `owner/name` on the hub.
 * @param path A folder with a full checkpoint (`config.json`) or an adapter in PEFT's format (`adapter_config.json`); for an adapter
 *   also `owner/name` on the hub. Null (default): the base model itself.
 * @throws PeriodicEvalError `model` if it cannot be opened, or if the adapter was trained on another base model.
 */
export type OpenCheckpoint = (
  base: string,
  path?: string | null,
  options?: OpenCheckpointOptions,
) => Promise<OpenedModel>;
