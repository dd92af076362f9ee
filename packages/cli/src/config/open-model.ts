import type { EvaluableModel, OpenCheckpoint, OpenCheckpointOptions, Tokenizer } from "@periodic-eval/core";
import {
  loadCausalLM,
  openCheckpoint,
  outlineCheckpoint,
  useBackend,
  type CheckpointLM,
} from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { showLoading } from "../terminal/loading-progress.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Selects a backend, by default the fastest one installed. Warns about installed backends that do not start. */
export async function startBackend(
  backend: string | undefined,
  terminal: Terminal,
): ReturnType<typeof useBackend> {
  const started = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of started.unusable)
    terminal.err(`${name} is installed but does not start: ${reason}`);
  return started;
}

/** The options of a command that name the model to measure and where it runs. */
export interface EngineOptions {
  readonly backend?: string;
}

/** Where models are opened. */
export interface Engine {
  /** As printed: `wasm`. */
  readonly name: string;
  readonly open: OpenCheckpoint;
  /** Opens only configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
  outline(base: string, path?: string | null, options?: OpenCheckpointOptions): Promise<EvaluableModel>;
  /** Frees what the engine itself holds. The caller disposes the models that it opened. */
  dispose(): Promise<void>;
}

/** Starts the engine that a command's options name. Opening a model shows the progress of downloads and of loading. */
export async function startEngine({ backend }: EngineOptions, terminal: Terminal): Promise<Engine> {
  const { name } = await startBackend(backend, terminal);
  return {
    name,
    open: checkpointOpener(terminal),
    outline: outlineOpener(terminal),
    dispose: async () => {},
  };
}

/** Returns a function that opens checkpoints on the current backend and shows the progress. */
export const checkpointOpener =
  (terminal: Terminal): OpenCheckpoint =>
  async (base, path, options) => {
    const { close, ...progress } = showLoading(terminal);
    try {
      return await openCheckpoint(base, path, { ...options, ...progress });
    } finally {
      close();
    }
  };

const outlineOpener =
  (terminal: Terminal): Engine["outline"] =>
  async (base, path, { tokenizer = null } = {}) => {
    const { onDownload, close } = showLoading(terminal);
    try {
      return (await outlineCheckpoint(base, path, { tokenizer, onDownload })).model;
    } finally {
      close();
    }
  };

/** Opens only a model's configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
export const openModelOutline = (source: string, terminal: Terminal): Promise<EvaluableModel> =>
  outlineOpener(terminal)(source);

/**
 * Loads a model to train, with its tokenizer, and shows the progress. The caller disposes the model.
 *
 * @param tokenizer Replaces the model's own tokenizer.
 */
export async function openModel(
  source: string,
  terminal: Terminal,
  tokenizer?: Tokenizer,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> {
  const { onDownload, onLoad, close } = showLoading(terminal);
  try {
    const loaded = tokenizer ?? (await loadTokenizer(source, { onDownload }));
    return { tokenizer: loaded, model: await loadCausalLM(source, { onDownload, onLoad }) };
  } finally {
    close();
  }
}
