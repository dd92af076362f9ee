import type { EvaluableModel, OpenedModel, Progress, TrainerCallback } from "@periodic-eval/core";
import type { Connection } from "./connection.ts";

/** A server that measures some evaluations on the adapter that the trainer saves. */
export interface MeasureOn {
  /** Ids of the callbacks that it measures. */
  readonly evaluations: readonly string[];
  /** Opens a saved adapter on the server. */
  open(path: string): Promise<OpenedModel>;
}

/** The adapters that the trainer saves, each step's once. The newest is open on the server, if there is one. */
export class SavedAdapters {
  readonly #connection: Connection;
  readonly #server: MeasureOn | null;
  #saved: { readonly step: number; readonly path: string } | null = null;
  #opened: { readonly path: string; readonly opened: OpenedModel } | null = null;

  constructor(connection: Connection, server: MeasureOn | null) {
    this.#connection = connection;
    this.#server = server;
  }

  async save({ step }: Progress): Promise<string> {
    if (this.#saved?.step !== step)
      this.#saved = { step, ...(await this.#connection.ask("save_checkpoint", { step })) };
    return this.#saved.path;
  }

  /** Returns the model on the server for the evaluations that it measures; null for others. */
  async modelOf({ id }: TrainerCallback, at: Progress): Promise<EvaluableModel | null> {
    if (this.#server?.evaluations.includes(id) !== true) return null;
    const path = await this.save(at);
    if (this.#opened?.path !== path) {
      await this.dispose();
      this.#opened = { path, opened: await this.#server.open(path) };
    }
    return this.#opened.opened.model;
  }

  async dispose(): Promise<void> {
    const last = this.#opened;
    this.#opened = null;
    await last?.opened.dispose?.();
  }
}
