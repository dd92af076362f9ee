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
export type Checkpoint = Pick<WatchedCheckpoint, "path" | "kind"> | null;

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
  #checkpoint: Checkpoint;
  #opened: Readonly<{ checkpoint: Checkpoint; opened: OpenedModel; model: EvaluableModel }> | null = null;
  /** The signature of the opened checkpoint; null for the base model. */
  #signature: string | null = null;

  constructor(options: CurrentModelOptions, checkpoint: Checkpoint) {
    this.#options = options;
    this.#checkpoint = checkpoint;
  }

  /** Names the checkpoint that `get` opens, and returns the one before. */
  moveTo(checkpoint: Checkpoint): Checkpoint {
    const before = this.#checkpoint;
    this.#checkpoint = checkpoint;
    return before;
  }

  /** @throws CheckpointGoneError if the checkpoint is deleted or changes while it is opened. */
  async get(): Promise<EvaluableModel> {
    const checkpoint = this.#checkpoint;
    if (this.#opened?.checkpoint === checkpoint) return this.#opened.model;
    // Adapters share the base's weights with the model before; two full models would take twice the memory.
    if (checkpoint?.kind === "full") await this.dispose();
    const opened = await this.#open(checkpoint);
    await this.dispose();
    this.#opened = { checkpoint, opened, model: await this.#measurable(checkpoint, opened) };
    return this.#opened.model;
  }

  /** Names, sizes and times of the files of the named checkpoint; null for the base model, and if nothing opened it. */
  get signature(): string | null {
    return this.#opened?.checkpoint === this.#checkpoint ? this.#signature : null;
  }

  /** Whether another program has written the opened checkpoint since: what was measured may be half of it. */
  async hasChanged(): Promise<boolean> {
    const path = this.#opened?.checkpoint?.path;
    return path !== undefined && this.#signature !== null && hasChanged(path, this.#signature);
  }

  async dispose(): Promise<void> {
    const last = this.#opened;
    this.#opened = null;
    await last?.opened.dispose?.();
  }

  async #open(checkpoint: Checkpoint): Promise<OpenedModel> {
    const { open, base, tokenizer, baseTokenizer, signal } = this.#options;
    if (checkpoint === null) return open(base, null, { tokenizer: tokenizer ?? baseTokenizer, signal });
    const { path } = checkpoint;
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
    checkpoint: Checkpoint,
    { model, fingerprint, baseFingerprint }: OpenedModel,
  ): Promise<EvaluableModel> {
    const withWeights = async (loaded: EvaluableModel, hash: OpenedModel["fingerprint"], folder: string) => {
      const weights = (await hash?.()) ?? loaded.identity.weights ?? (await hashWeightFiles(folder));
      return { ...loaded, identity: { ...loaded.identity, weights } };
    };
    const { base, isAdapted } = this.#options;
    const measured = await withWeights(model, fingerprint, checkpoint?.path ?? base);
    if (model.base !== undefined)
      return { ...measured, base: await withWeights(model.base, baseFingerprint, base) };
    return checkpoint === null && isAdapted ? { ...measured, base: measured } : measured;
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
  const copy = join(runDir, "watch", `${phase}.tokenizer`);
  const namesIn = (folder: string) => readdir(folder).catch((): string[] => []);
  if ((await namesIn(copy)).length > 0) return copy;
  const names = (await namesIn(checkpoint)).filter((name) => files.test(name));
  if (!names.includes("tokenizer.json")) return null;
  await makeFolder(dirname(copy));
  await writeWholeFolder(copy, async (draft) => {
    for (const name of names) await writeFile(join(draft, name), await readFile(join(checkpoint, name)));
  });
  return copy;
}

/** All files that `loadTokenizer` reads: `config.json` decides the class of the tokenizer. */
const files =
  /^(tokenizer|tokenizer_config|special_tokens_map|added_tokens|generation_config|config)\.json$|^chat_template\.jinja$/;
