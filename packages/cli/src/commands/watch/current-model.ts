import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { EvaluableModel, OpenCheckpoint, OpenedModel } from "@periodic-eval/core";
import { hasChanged, readCheckpointFolder, type WatchedCheckpoint } from "@periodic-eval/remote";
import { hashWeightFiles, makeFolder, writeWholeFolder } from "@periodic-eval/store";

/** A checkpoint that was deleted or written again while it was read. */
export class CheckpointGoneError extends Error {
  constructor(path: string) {
    super(`${path} was deleted, or written again while it was read`);
  }
}

/** A checkpoint to open; null for the base model. */
export type Place = Pick<WatchedCheckpoint, "path" | "kind"> | null;

export interface CurrentModelOptions {
  readonly open: OpenCheckpoint;
  readonly base: string;
  /** Null: each checkpoint's, otherwise the base's. */
  readonly tokenizer: string | null;
  /** The tokenizer of the base model, so that the base and the checkpoints are measured with the same one. */
  readonly baseTokenizer: string | null;
  /** Whether the checkpoints are adapters. The base model is then measurable without an adapter, too: as itself. */
  readonly isAdapted: boolean;
  readonly signal: AbortSignal;
}

/** The model that is measured: the base first, then one checkpoint after the other. Weights load when they are needed. */
export class CurrentModel {
  readonly #options: CurrentModelOptions;
  #place: Place;
  #opened: { readonly place: Place; readonly opened: OpenedModel; readonly model: EvaluableModel } | null =
    null;
  /** The signature of the opened checkpoint; null for the base model. */
  #signature: string | null = null;

  constructor(options: CurrentModelOptions, place: Place) {
    this.#options = options;
    this.#place = place;
  }

  /** Names the checkpoint that `get` opens, and returns the one before. */
  moveTo(place: Place): Place {
    const before = this.#place;
    this.#place = place;
    return before;
  }

  /** @throws CheckpointGoneError if the checkpoint is deleted or changes while it is opened. */
  async get(): Promise<EvaluableModel> {
    const place = this.#place;
    if (this.#opened?.place === place) return this.#opened.model;
    // Adapters share the base's weights with the model before; two full models would take twice the memory.
    if (place?.kind === "full") await this.dispose();
    const opened = await this.#open(place);
    await this.dispose();
    this.#opened = { place, opened, model: await this.#measurable(place, opened) };
    return this.#opened.model;
  }

  /** Names, sizes and times of the files of the named checkpoint; null for the base model, and if nothing opened it. */
  get signature(): string | null {
    return this.#opened?.place === this.#place ? this.#signature : null;
  }

  /** Whether another program has written the opened checkpoint since: what was measured may be half of it. */
  async hasChanged(): Promise<boolean> {
    const path = this.#opened?.place?.path;
    return path !== undefined && this.#signature !== null && hasChanged(path, this.#signature);
  }

  async dispose(): Promise<void> {
    const last = this.#opened;
    this.#opened = null;
    await last?.opened.dispose?.();
  }

  async #open(place: Place): Promise<OpenedModel> {
    const { open, base, tokenizer, baseTokenizer, signal } = this.#options;
    if (place === null) return open(base, null, { tokenizer: tokenizer ?? baseTokenizer, signal });
    const { path } = place;
    const signature = async () => (await readCheckpointFolder(path))?.signature;
    const before = await signature();
    if (before === undefined) throw new CheckpointGoneError(path);
    let opened: OpenedModel | null = null;
    try {
      opened = await open(base, path, { tokenizer, signal });
    } catch (error) {
      if ((await signature()) === before) throw error;
    }
    // A folder that is being deleted may have lost its chat template before it was read.
    if (opened !== null && (await signature()) === before) {
      this.#signature = before;
      return opened;
    }
    await opened?.dispose?.();
    throw new CheckpointGoneError(path);
  }

  /** Returns the model with the hash of its weights, by which a resumed watcher recognizes its measurements. */
  async #measurable(
    place: Place,
    { model, fingerprint, baseFingerprint }: OpenedModel,
  ): Promise<EvaluableModel> {
    const withWeights = async (one: EvaluableModel, hash: OpenedModel["fingerprint"], folder: string) => {
      const weights = (await hash?.()) ?? one.identity.weights ?? (await hashWeightFiles(folder));
      return { ...one, identity: { ...one.identity, weights } };
    };
    const { base, isAdapted } = this.#options;
    const own = await withWeights(model, fingerprint, place?.path ?? base);
    if (model.base !== undefined)
      return { ...own, base: await withWeights(model.base, baseFingerprint, base) };
    return place === null && isAdapted ? { ...own, base: own } : own;
  }
}

/**
 * Copies the tokenizer of a checkpoint into the run's folder, because the trainer may delete the checkpoint, and returns its folder;
 * null if the checkpoint has none. Every watcher of a phase uses the first copy.
 */
export async function keepTokenizer(
  checkpoint: string,
  runDir: string,
  phase: string,
): Promise<string | null> {
  const kept = join(runDir, "watch", `${phase}.tokenizer`);
  const namesIn = (folder: string) => readdir(folder).catch((): string[] => []);
  if ((await namesIn(kept)).length > 0) return kept;
  const names = (await namesIn(checkpoint)).filter((name) => files.test(name));
  if (!names.includes("tokenizer.json")) return null;
  await makeFolder(dirname(kept));
  await writeWholeFolder(kept, async (draft) => {
    for (const name of names) await writeFile(join(draft, name), await readFile(join(checkpoint, name)));
  });
  return kept;
}

/** All files that `loadTokenizer` reads: `config.json` decides the class of the tokenizer. */
const files =
  /^(tokenizer|tokenizer_config|special_tokens_map|added_tokens|generation_config|config)\.json$|^chat_template\.jinja$/;
